# fish completion for Scored's commands. Options are read from each command's own --help, so they
# are always those of the installed version. fish loads this file under the name of each command.

function __scored_options
    $argv --help 2>/dev/null | string match -arg '(?:^|[ ,])(--[a-z][a-z-]*)' | sort -u
end

function __scored_words
    set -l words (commandline -opc)
    set -l command $words[1]
    set -l previous $words[-1]
    if string match -q -- '-*' (commandline -ct)
        if contains $command score scadm scbench scored-setup; and set -q words[2]; and not string match -q -- '-*' $words[2]
            __scored_options $command $words[2]
        else if test $command = scored
            __scored_options scored (string match -- '--role=*' $words)
        else
            __scored_options $command
        end
        return
    end
    switch $command:$previous
        case 'sccancel:*' 'scattach:*' 'scq:--why' 'scrun:--job' score:job score:hold score:release score:suspend score:resume
            scq --no-header -o job 2>/dev/null
        case scadm:drain scadm:resume scadm:reserve '*:-w' '*:-x'
            scnodes --no-header -o node 2>/dev/null
        case scadm:scadm
            printf '%s\n' set get drain resume reserve unreserve reservations key reload shutdown web-login trace
        case scadm:set scadm:get
            printf '%s\n' quantum slots idle fill
        case scadm:idle scadm:fill
            printf '%s\n' on off
        case 'scrun:--mpi'
            printf '%s\n' auto pmi1 pmix both none
        case 'scrun:--net'
            printf '%s\n' native pm
        case 'scrun:--distribution' 'scrun:-m'
            printf '%s\n' block cyclic
        case 'scrun:--open-mode' 'scbatch:--open-mode'
            printf '%s\n' truncate append
        case 'scrun:--cpu-bind'
            printf '%s\n' none core socket
        case 'scrun:--queue' 'scbatch:--queue' 'scalloc:--queue'
            printf '%s\n' exclusive high normal urgent
        case '*:--color'
            printf '%s\n' auto always never
        case score:score
            score --help 2>/dev/null | string match -rg '^  ([a-z]+) '
        case scbench:scbench
            printf '%s\n' gang pm cosmo mpi load control io replay
        case scored-setup:scored-setup
            printf '%s\n' head node token
        case scored-setup:token
            scnodes --no-header -o node 2>/dev/null
        case 'scored:*'
            printf '%s\n' --role=head --role=node
        case 'scrun:*' 'scout:*' 'scalloc:*'
            __fish_complete_command
    end
end

for command in score scrun scbatch scalloc scout scq sccancel scnodes scattach scadm scacct scshare sctop scbench scored scored-launcher scored-setup
    complete -c $command -a '(__scored_words)'
end
