# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# Completion for fish: the one for bash says what a word can be.
function __mq_complete
    set -l words (commandline -opc) (commandline -ct)
    bash @COMPDIR@/mq-stats $words 2>/dev/null
end

for tool in mq-publish mq-consume mq-lease mq-stats mq-return mq-purge mq-pause mq-set mq-clean
    complete -c $tool -f -a '(__mq_complete)'
end
