# ask_SHELL LINE prints the words that bash, zsh or fish offers at the end of a command line, one per line.
# Tests source this file; they set `files`, the directory of the completion files, and
# SCORED_COMPLETION_WORDS.

ask_bash() {
  bash -c '
    . "$1"
    compopt() { :; }
    # readline separates words at "=" too.
    read -ra words <<<"${2//=/ = }"
    case $2 in *[\ =]) words+=("") ;; esac
    COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
    _scored "${words[0]}"
    for word in "${COMPREPLY[@]}"; do
      last=${2##* }
      case $last in *=*) printf "%s\n" "${last%%=*}=$word" ;; *) printf "%s\n" "$word" ;; esac
    done' bash "$files/scored.bash" "$1"
}

# These replace the functions of zsh that offer words; they print the words instead.
ask_zsh() {
  zsh -f -c '
    compadd() { local -a plain; while [[ $1 == -* ]]; do [[ $1 == -a ]] && plain=(${(P)2}) && shift; [[ $1 == -S ]] && shift; shift; done
      print -rl -- $plain | grep -F -e "$words[CURRENT]" | grep "^$prefix"; }
    _files() { :; }; _users() { :; }
    _command_names() { print -l sh; }
    words=(${(z)2}); case $2 in *\ ) words+=("") ;; esac
    CURRENT=$#words prefix=""
    . "$1"' zsh "$files/scored.zsh" "$1"
}

ask_fish() {
  fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$files/scored.fish" "$1" | cut -f1
}
