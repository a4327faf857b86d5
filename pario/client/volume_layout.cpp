// The layout `local`: a file is as a whole on the server of the node that makes it. Its number says
// so, and a directory hands the layout down to what is made in it.
#include "pario/client/volume.hpp"

#include <cerrno>

namespace score::pario {

std::uint16_t Volume::layout_in(FileId directory) const {
  const bool is_of_root = directory == kRootId && description_.is_local;
  return is_of_root || is_local(directory) ? kLocalLayout : 0;
}

std::uint32_t Volume::own_server(std::uint32_t otherwise) const {
  if (links_[otherwise]->is_on_this_node()) return otherwise;
  std::vector<std::uint32_t> own;
  for (std::uint32_t server = 0; server < servers(); ++server) {
    if (links_[server]->is_on_this_node()) own.push_back(server);
  }
  return own.empty() ? otherwise : own[otherwise % own.size()];
}

// The file is made without a name first, and its name is counted before it is entered, as with
// link(2). If this client dies before the count, the server removes the file.
int Volume::create_on(std::uint32_t server, const Name& name, std::uint32_t mode,
                      FileStatus& found) {
  Entry there;
  const int missing = find(name.parent, name.name, there);
  if (missing != ENOENT) return missing == 0 ? EEXIST : missing;
  Call made;
  made.request = {.op = Op::MakeFile, .flags = kLocalLayout, .id = name.parent, .mode = mode};
  if (const int error = call(server, made)) return error;
  Attributes attributes;
  if (!parse_body(made.body, attributes)) return EPROTO;
  Call count;
  count.request.flags = kOpened;
  count.request.number = 1;
  int error = call_home(Op::ChangeLinks, attributes.id, count);
  if (error == 0) error = insert(name, {attributes.id, attributes.mode, {}}, kExclusive);
  if (error == 0) return take_status(count, found);
  Call undo;
  undo.request.flags = kOpened;
  static_cast<void>(call_home(Op::ChangeLinks, attributes.id, undo));
  static_cast<void>(remove_file(attributes.id, kNameless));
  return error;
}

int Volume::make_local_directory(FileId parent, std::string_view name, std::uint32_t mode,
                                 FileStatus& found) {
  Call one;
  one.request.mode = S_IFDIR | mode;
  one.request.flags = kExclusive | kLocalLayout;
  const int error = named(Op::Create, {parent, name}, one);
  return error != 0 ? error : take_status(one, found);
}

}  // namespace score::pario
