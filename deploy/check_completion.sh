#!/bin/bash
# Checks that bash, fish and zsh complete each command and offer the same words. The words that need a
# cluster are tested by tests/integration/run/test_completion.py.
# usage: check_completion.sh DIRECTORY_OF_FILES DIRECTORY_OF_PROGRAMS
set -eu
files=$1
PATH=$2:$PATH
export SCORED_COMPLETION_WORDS=$files/completion-words SCORED_SERVER=/nonexistent
commands=$(sed -n 's/^complete -F _scored //p' "$files/scored.bash")
[ "$(sed -n 's/^#compdef //p' "$files/scored.zsh")" = "$commands" ] || { echo "zsh and bash complete different commands"; exit 1; }
[ "$(sed -n 's/^for command in \(.*\)$/\1/p' "$files/scored.fish")" = "$commands" ] || { echo "fish and bash complete different commands"; exit 1; }
. "$(dirname "$0")/ask_shells.sh"

# offers SHELL LINE WORD...: the shell offers each WORD at the end of LINE
offers() {
  local shell=$1 line=$2 found word
  shift 2
  found=$(ask_"$shell" "$line" || true)  # the status is that of a completion function
  for word in "$@"; do
    grep -qxF -e "$word" <<<"$found" || { echo "$shell: '$line' does not offer $word, but: $found" | head -20; exit 1; }
  done
}
# lacks SHELL LINE WORD: the shell does not offer WORD at the end of LINE
lacks() {
  if ask_"$1" "$2" | grep -qxF -e "$3"; then echo "$1: '$2' offers $3"; exit 1; fi
}

check() {
  local shell=$1 command
  for command in $commands; do
    offers "$shell" "$command --" --help --version
  done
  offers "$shell" 'score ' virtual doctor job
  offers "$shell" 'score doctor --' --quick
  offers "$shell" 'scored-setup ' node
  offers "$shell" 'scored-setup node --' --token
  offers "$shell" 'scadm ' key drain
  offers "$shell" 'scadm key ' rotate revoke list
  offers "$shell" 'scadm set ' quantum fill
  offers "$shell" 'scio ' create destroy
  offers "$shell" 'scsim --policies ' matrix easy
  offers "$shell" 'scacct --by ' user day
  offers "$shell" 'scacct --by user,' user,day
  offers "$shell" 'scacct --state ' failed completed
  offers "$shell" 'scq -o ' job reason
  offers "$shell" 'scq -o job,na' job,name
  offers "$shell" 'scnodes --format ' node gres
  offers "$shell" 'scrun --queue ' urgent
  offers "$shell" 'scrun --queue=' --queue=urgent
  offers "$shell" 'scrun --export ' NONE PATH
  offers "$shell" 'scrun -t ' 30m
  for option in -A --account --reservation --export --time --nodelist -w; do
    lacks "$shell" "scrun $option " sh
  done
  offers "$shell" 'scrun ' sh
}

for shell in bash zsh fish; do
  if command -v "$shell" >/dev/null; then
    check "$shell"
    echo "$shell: completes"
  else
    echo "$shell: not tested: it is not installed"
  fi
done
