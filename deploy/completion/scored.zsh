#compdef score scrun scbatch scalloc scout scq sccancel scnodes scattach scadm scacct scshare sctop scbench scsim scio scored scored-launcher scored-setup
# This is the zsh completion for Scored's commands; it offers the words of completion-words.

_scored() {
  local script=$SCORED_COMPLETION_WORDS word
  local -a found
  local -i ret=1  # 0: something was offered
  [[ -n $script ]] || script=${${commands[score]:-$commands[$words[1]]}:A:h}/../share/scored/completion-words
  for word in ${(f)"$(sh $script $((CURRENT - 1)) ${(Q)words} 2>/dev/null)"}; do
    case $word in
      :files) _files && ret=0 ;;
      :commands) _command_names -e && ret=0 ;;
      :users) _users && ret=0 ;;
      :none) ;;
      *) found+=($word) ;;
    esac
  done
  local -a open=(${(M)found:#*[,:=/]}) whole=(${found:#*[,:=/]})
  (( $#open )) && compadd -S '' -a open && ret=0
  (( $#whole )) && compadd -a whole && ret=0
  return ret
}

_scored "$@"
