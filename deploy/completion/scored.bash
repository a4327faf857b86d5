# This is the bash completion for Scored's commands; it offers the words of completion-words.

_scored_words() {
  local words=${SCORED_COMPLETION_WORDS:-}
  [[ $words ]] || words=$(dirname -- "$(readlink -f -- "$(type -P score || type -P "$1")")")/../share/scored/completion-words
  sh "$words" "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null
}

_scored() {
  local current=${COMP_WORDS[COMP_CWORD]} word has_files=
  local -a offered=()
  [[ $current == = ]] && current=
  COMPREPLY=()
  while IFS= read -r word; do
    case $word in
      :files)
        has_files=1
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current")
        ;;
      :commands) COMPREPLY+=($(compgen -c -- "$current")) ;;
      :users) COMPREPLY+=($(compgen -u -- "$current")) ;;
      :none) ;;
      *) [[ $word == "$current"* ]] && offered+=("$word") ;;
    esac
  done < <(_scored_words "$1")
  COMPREPLY+=("${offered[@]}")
  # If only files are offered, bash adds "/" to directories and quotes blanks.
  [[ $has_files && ${#offered[@]} -eq 0 ]] && compopt -o filenames 2>/dev/null
  [[ ${#COMPREPLY[@]} -eq 1 && $COMPREPLY == *[,:=/] ]] && compopt -o nospace 2>/dev/null
  return 0
}

complete -F _scored score scrun scbatch scalloc scout scq sccancel scnodes scattach scadm scacct scshare sctop scbench scsim scio scored scored-launcher scored-setup
