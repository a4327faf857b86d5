#include "scout/commands.hpp"
namespace score::scout {
int virtual_main(const Invocation& invocation) { return complain(invocation, "not built"); }
}
