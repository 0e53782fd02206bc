// Which of UCX's messages should carry a collective? Two processes exchange a vector in pieces and add what comes, as
// one step of an allreduce does, by tagged messages and by active messages, eager and rendezvous:
//   tag          pieces are received into scratch, then added
//   am           pieces are added straight out of UCX's memory when they are there, else fetched into scratch first
// Prints microseconds for one exchange, the median of alternating blocks. Usage: messages
#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "procs/procs.h"
#include "reduce/host.h"

namespace {

constexpr size_t kLargest = size_t(4) << 20;  // bytes
constexpr int kWindow = 8;                    // pieces in flight

struct Side {
  ucp_worker_h worker;
  ucp_ep_h peer;
  gpurdma::Reduce add;
  std::vector<float> in, out, scratch;
  size_t piece = 0, arrived = 0;  // bytes of the current exchange
  int fetching = 0;
};

ucp_request_param_t plain() {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  return param;
}

void finish(Side& side, ucs_status_ptr_t request) {
  if (!UCS_PTR_IS_PTR(request)) return;
  while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(side.worker);
  ucp_request_free(request);
}

void add_piece(Side& side, size_t at, const void* data, size_t bytes) {
  side.add(side.out.data() + at / 4, side.in.data() + at / 4, data, bytes / 4);
}

void by_tags(Side& side, size_t bytes, size_t piece) {
  const size_t pieces = (bytes + piece - 1) / piece;
  ucs_status_ptr_t sends[kWindow] = {}, recvs[kWindow] = {};
  ucp_request_param_t recv = plain(), send = plain();
  recv.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  for (size_t i = 0; i < pieces + kWindow; ++i) {
    if (i >= kWindow) {  // piece i - kWindow ends before its place is used again
      const size_t done = i - kWindow;
      finish(side, recvs[done % kWindow]);
      add_piece(side, done * piece, side.scratch.data() + done % kWindow * piece / 4,
                std::min(piece, bytes - done * piece));
      finish(side, sends[done % kWindow]);
    }
    if (i >= pieces) continue;
    const size_t n = std::min(piece, bytes - i * piece);
    recvs[i % kWindow] =
        ucp_tag_recv_nbx(side.worker, side.scratch.data() + i % kWindow * piece / 4, n, 7, ~0ull, &recv);
    sends[i % kWindow] = ucp_tag_send_nbx(side.peer, reinterpret_cast<char*>(side.in.data()) + i * piece, n, 7, &send);
  }
}

void fetched(void* request, ucs_status_t, size_t bytes, void* arg) {
  Side& side = *static_cast<Side*>(arg);
  ucp_request_free(request);
  add_piece(side, 0, side.scratch.data(), bytes);
  side.arrived += bytes;
  --side.fetching;
}

ucs_status_t on_message(void* arg, const void* header, size_t, void* data, size_t bytes,
                        const ucp_am_recv_param_t* param) {
  Side& side = *static_cast<Side*>(arg);
  if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
    ucp_request_param_t fetch = plain();
    fetch.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    fetch.cb.recv_am = fetched;
    fetch.user_data = &side;
    ++side.fetching;
    const ucs_status_ptr_t request = ucp_am_recv_data_nbx(side.worker, data, side.scratch.data(), bytes, &fetch);
    if (request == nullptr) {
      add_piece(side, 0, side.scratch.data(), bytes);
      side.arrived += bytes;
      --side.fetching;
    }
    return UCS_INPROGRESS;
  }
  size_t at = 0;
  std::memcpy(&at, header, sizeof at);
  add_piece(side, at, data, bytes);
  side.arrived += bytes;
  return UCS_OK;
}

void by_active_messages(Side& side, size_t bytes, size_t piece, unsigned flags) {
  ucp_request_param_t send = plain();
  send.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  send.flags = flags;
  ucs_status_ptr_t sends[kWindow] = {};
  size_t headers[kWindow];
  size_t i = 0;
  for (size_t at = 0; at < bytes; at += piece, ++i) {
    finish(side, sends[i % kWindow]);
    headers[i % kWindow] = at;
    sends[i % kWindow] =
        ucp_am_send_nbx(side.peer, 0, &headers[i % kWindow], sizeof at, reinterpret_cast<char*>(side.in.data()) + at,
                        std::min(piece, bytes - at), &send);
    ucp_worker_progress(side.worker);
  }
  for (ucs_status_ptr_t request : sends) finish(side, request);
  while (side.arrived < bytes) ucp_worker_progress(side.worker);
  side.arrived -= bytes;
}

bool open(Side& side, const procs::Rank& self, const char* slot) {
  ucp_config_t* config;
  ucp_context_h context;
  if (ucp_config_read(nullptr, nullptr, &config) != UCS_OK) return false;
  if (slot) ucp_config_modify(config, "MM_SEG_SIZE", slot);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_TAG;
  ucp_worker_params_t worker{};
  if (ucp_init(&params, config, &context) != UCS_OK || ucp_worker_create(context, &worker, &side.worker) != UCS_OK)
    return false;
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = on_message;
  handler.arg = &side;
  ucp_worker_set_am_recv_handler(side.worker, &handler);
  ucp_address_t* address;
  size_t bytes;
  ucp_worker_get_address(side.worker, &address, &bytes);
  char theirs[16384];
  const int socket = self.sockets[size_t(1 - self.rank)];
  if (send(socket, address, bytes, 0) < 0 || recv(socket, theirs, sizeof theirs, 0) <= 0) return false;
  ucp_ep_params_t peer{};
  peer.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  peer.address = reinterpret_cast<ucp_address_t*>(theirs);
  side.add = gpurdma::host_reduce(gpurdma::Op::sum, gpurdma::Type::float32);
  side.in.assign(kLargest / 4, 1.0f);
  side.out = side.scratch = side.in;
  return ucp_ep_create(side.worker, &peer, &side.peer) == UCS_OK;
}

template <class F>
double microseconds(size_t bytes, F exchange) {
  const int times = int(std::max<size_t>(4, 4000000 / (bytes + 20000)));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) exchange();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / times;
}

int measure(procs::Rank& self) {
  // UCX's own slots of shared memory, and slots that hold 32 KiB. Never closed: this is a measurement.
  static Side usual, large;
  if (!open(usual, self, nullptr) || !open(large, self, "33k")) return 1;
  if (self.rank == 0)
    std::printf("%10s %8s %10s %10s %10s %12s\n", "bytes", "piece", "tag", "am eager", "am rndv", "am eager 33k");
  for (size_t bytes = 4; bytes <= kLargest; bytes *= 4) {
    for (const size_t piece : {size_t(8000), size_t(32768)}) {
      if (bytes <= 8000 && piece != 8000) continue;
      std::vector<double> times[4];
      for (int block = 0; block < 11; ++block) {
        times[0].push_back(microseconds(bytes, [&] { by_tags(usual, bytes, piece); }));
        times[1].push_back(
            microseconds(bytes, [&] { by_active_messages(usual, bytes, piece, UCP_AM_SEND_FLAG_EAGER); }));
        times[2].push_back(
            microseconds(bytes, [&] { by_active_messages(usual, bytes, piece, UCP_AM_SEND_FLAG_RNDV); }));
        times[3].push_back(
            microseconds(bytes, [&] { by_active_messages(large, bytes, piece, UCP_AM_SEND_FLAG_EAGER); }));
      }
      for (auto& t : times) std::sort(t.begin(), t.end());
      if (self.rank == 0)
        std::printf("%10zu %8zu %10.2f %10.2f %10.2f %12.2f\n", bytes, piece, times[0][5], times[1][5], times[2][5],
                    times[3][5]);
      std::fflush(stdout);
    }
  }
  self.barrier();
  std::fflush(nullptr);
  _Exit(0);
}

}  // namespace

int main() { return procs::run(2, 300, measure, true); }
