#include "pario/server/copies.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace score::pario {

void Copies::start(TransferPtr transfer, std::uint32_t part, DataRequests& data) {
  Request& request = transfer->request;
  const std::uint32_t source = request.mode;
  transfer->copy_to = request.id;
  transfer->copy_offset = request.number;
  request.op = Op::Read;
  request.id = request.other;
  if (source == part) return data.start(std::move(transfer));
  const Request read{.op = Op::Read, .id = request.id, .extents = request.extents};
  const iovec memory{transfer->data.get(), request.extents[0].length};
  const auto shared = std::make_shared<TransferPtr>(std::move(transfer));
  peers_.read(source, read, memory, [this, shared](int error, const Reply& reply) {
    (*shared)->answer.error = error;
    (*shared)->answer.data_bytes = reply.data_bytes;
    read_done(std::move(*shared));
  });
}

// Bytes behind the end of the data there are a hole of the file.
void Copies::read_done(TransferPtr transfer) {
  Request& request = transfer->request;
  const FileId target = std::exchange(transfer->copy_to, 0);
  if (transfer->answer.error != 0) return hooks_.answer(std::move(transfer));
  const std::size_t length = request.extents[0].length;
  const std::size_t there = std::min<std::size_t>(transfer->answer.data_bytes, length);
  std::memset(transfer->data.get() + there, 0, length - there);
  request.op = Op::Write;
  request.id = target;
  request.extents[0].offset = transfer->copy_offset;
  request.data_bytes = static_cast<std::uint32_t>(length);
  transfer->answer = {};
  hooks_.arrived(std::move(transfer));
}

}  // namespace score::pario
