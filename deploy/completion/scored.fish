# This is the fish completion for Scored's commands; it offers the words of completion-words. fish loads
# this file under the name of each command.

function __scored_words
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l words $SCORED_COMPLETION_WORDS
    if test -z "$words"
        set -l score (command -s score; or command -s $before[1])
        set words (dirname (realpath $score))/../share/scored/completion-words
    end
    for word in (sh $words (count $before) $before $current 2>/dev/null)
        switch $word
            case :files
                __fish_complete_path $current
            case :commands
                __fish_complete_command
            case :users
                __fish_complete_users
            case :none
            case '*'
                echo $word
        end
    end
end

for command in score scrun scbatch scalloc scout scq sccancel scnodes scattach scadm scacct scshare sctop scbench scsim scio scored scored-launcher scored-setup
    complete -c $command -f -a '(__scored_words)'
end
