#compdef score scrun scbatch scalloc scout scq sccancel scnodes scattach scadm scacct scshare sctop scbench scored scored-launcher scored-setup
# zsh completion for Scored's commands. Options are read from each command's own --help, so they
# are always those of the installed version.

_scored_options() {
  "$@" --help 2>/dev/null | grep -oE '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u
}

_scored_words() {
  local command=$words[1] previous=$words[CURRENT-1]
  if [[ $words[CURRENT] == -* ]]; then
    if [[ $command == (score|scadm|scbench|scored-setup) && CURRENT -gt 2 && $words[2] != -* ]]; then
      _scored_options $command $words[2]
    elif [[ $command == scored && CURRENT -gt 2 ]]; then
      _scored_options scored ${(M)words:#--role=*}
    else
      _scored_options $command
    fi
    return
  fi
  case $command:$previous in
    sccancel:*|scattach:*|scq:--why|scrun:--job|score:(job|hold|release|suspend|resume)) scq --no-header -o job 2>/dev/null ;;
    scadm:(drain|resume|reserve)|*:-w|*:-x) scnodes --no-header -o node 2>/dev/null ;;
    scadm:scadm) print -l set get drain resume reserve unreserve reservations key reload shutdown web-login trace ;;
    scadm:(set|get)) print -l quantum slots idle fill ;;
    scadm:(idle|fill)) print -l on off ;;
    scrun:--mpi) print -l auto pmi1 pmix both none ;;
    scrun:--net) print -l native pm ;;
    scrun:(--distribution|-m)) print -l block cyclic ;;
    (scrun|scbatch):--open-mode) print -l truncate append ;;
    scrun:--cpu-bind) print -l none core socket ;;
    (scrun|scbatch|scalloc):--queue) print -l exclusive high normal urgent ;;
    *:--color) print -l auto always never ;;
    score:score) score --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' ;;
    scbench:scbench) print -l gang pm cosmo mpi load control io replay ;;
    scored-setup:scored-setup) print -l head node token ;;
    scored-setup:token) scnodes --no-header -o node 2>/dev/null ;;
    scored:*) print -l -- --role=head --role=node ;;
  esac
}

_scored() {
  local -a found
  found=(${(f)"$(_scored_words)"})
  if (( $#found )); then
    compadd -a found
  elif [[ $words[1] == (scrun|scout|scalloc) ]]; then
    _command_names -e || _files
  else
    _files
  fi
}

_scored "$@"
