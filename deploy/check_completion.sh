#!/bin/bash
# Every command that the files name is completed by bash, fish and zsh as it is by the others.
# usage: check_completion.sh DIRECTORY_OF_FILES DIRECTORY_OF_PROGRAMS
set -eu
files=$1
PATH=$2:$PATH
commands=$(sed -n 's/^complete .*-F _scored //p' "$files/scored.bash")
[ "$(sed -n 's/^#compdef //p' "$files/scored.zsh")" = "$commands" ] || { echo "zsh completes other commands than bash"; exit 1; }
[ "$(sed -n 's/^for command in \(.*\)$/\1/p' "$files/scored.fish")" = "$commands" ] || { echo "fish completes other commands than bash"; exit 1; }

. "$files/scored.bash"
# words COMMAND WORD...: what bash offers for the last word
words() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _scored "$1"
  printf '%s\n' "${COMPREPLY[@]}"
}
for command in $commands; do
  words "$command" -- | grep -qx -- --help || { echo "bash: $command: no --help"; exit 1; }
  words "$command" --v | grep -qx -- --version || { echo "bash: $command: no --version"; exit 1; }
done
words score '' | grep -qx virtual
words score '' | grep -qx doctor
words score doctor -- | grep -qx -- --quick
words scored-setup '' | grep -qx node
words scored-setup node -- | grep -qx -- --token
words scored --role = head --conf | grep -qx -- --config
if command -v fish >/dev/null; then
  for command in $commands; do
    fish -c "source $files/scored.fish; complete -C '$command --'" | grep -q '^--help' || { echo "fish: $command: no --help"; exit 1; }
  done
fi
if command -v zsh >/dev/null; then zsh -n "$files/scored.zsh"; fi
