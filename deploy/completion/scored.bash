# bash completion for Scored's commands. Options are read from each command's own --help, so they
# are always those of the installed version.

_scored_options() {
  "$@" --help 2>/dev/null | grep -oE '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u
}

_scored_jobs() {
  scq --no-header -o job 2>/dev/null
}

_scored_nodes() {
  scnodes --no-header -o node 2>/dev/null
}

_scored() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words
  COMPREPLY=()
  if [[ $current == -* ]]; then
    if [[ $1 == score || $1 == scadm || $1 == scbench || $1 == scored-setup ]] && ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]]; then
      words=$(_scored_options "$1" "${COMP_WORDS[1]}")
    elif [[ $1 == scored && ${COMP_WORDS[1]} == --role ]] && ((COMP_CWORD > 3)); then
      words=$(_scored_options scored --role="${COMP_WORDS[3]}")  # "=" is a word of its own
    else
      words=$(_scored_options "$1")
    fi
  else
    case $1:$previous in
      sccancel:* | scattach:* | scq:--why | score:job | score:hold | score:release | score:suspend | score:resume) words=$(_scored_jobs) ;;
      scadm:drain | scadm:resume | scadm:reserve | *:-w | *:-x) words=$(_scored_nodes) ;;
      scadm:scadm) words='set get drain resume reserve unreserve reservations key reload shutdown web-login trace' ;;
      scadm:set | scadm:get) words='quantum slots idle fill' ;;
      scadm:idle | scadm:fill) words='on off' ;;
      scrun:--mpi) words='auto pmi1 pmix both none' ;;
      scrun:--net) words='native pm' ;;
      scrun:--distribution) words='block cyclic' ;;
      scrun:--open-mode|scbatch:--open-mode) words='truncate append' ;;
      scrun:-m) words='block cyclic' ;;
      scrun:--cpu-bind) words='none core socket' ;;
      scrun:--queue | scbatch:--queue | scalloc:--queue) words='exclusive high normal urgent' ;;
      *:--color) words='auto always never' ;;
      score:score) words=$(score --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p') ;;
      scbench:scbench) words='gang pm cosmo mpi load control io replay' ;;
      scored-setup:scored-setup) words='head node token' ;;
      scored-setup:token) words=$(_scored_nodes) ;;
      scored:--role | scored:=) words='head node' ;;
      scored:scored) words='--role=head --role=node --version --help' ;;
      scrun:--job) words=$(_scored_jobs) ;;
      scrun:* | scout:* | scalloc:*)
        COMPREPLY=($(compgen -c -- "$current"))
        return
        ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}

complete -o default -F _scored score scrun scbatch scalloc scout scq sccancel scnodes scattach scadm scacct scshare sctop scbench scored scored-launcher scored-setup
