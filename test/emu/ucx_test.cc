// A UCX that is built with CUDA, on the software driver: two processes move emulated device memory by tag, active
// message, put and get, with host and device memory on either side, and every byte is checked. Shows that UCX's CUDA
// modules load, that their hooks of the driver's functions leave it working, and that UCX takes device memory for what
// it is. Needs such a UCX at run time (contrib/ucx-cuda): with another one it exits with 77.
//
//   ucx_test          UCX_TLS chooses the transports
#include <cuda.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

const char* side = "?";

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::printf("FAIL ucx_test: %s: %s, line %d\n", side, #condition, __LINE__); \
      std::fflush(stdout);                                                         \
      _exit(1);                                                                    \
    }                                                                              \
  } while (0)

enum class Verb { tag, active_message, put, get };
const char* const kVerbs[] = {"tag", "active message", "put", "get"};

struct Case {
  Verb verb;
  bool device_here, device_there;  // at the process that starts, and at the other one
  size_t bytes;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (Verb verb : {Verb::tag, Verb::active_message, Verb::put, Verb::get})
    for (bool here : {false, true})
      for (bool there : {false, true})
        for (size_t bytes : {size_t(8), size_t(4099), size_t(65536), size_t(1) << 20, (size_t(8) << 20) - 24})
          all.push_back({verb, here, there, bytes});
  return all;
}

// Bytes of the host or of the device, written and read through the driver alone.
class Memory {
 public:
  Memory(bool device, size_t bytes) : bytes_(bytes), host_(device ? 0 : bytes) {
    if (device) CHECK(cuMemAlloc(&device_, bytes) == CUDA_SUCCESS);
  }
  ~Memory() {
    if (device_ != 0) CHECK(cuMemFree(device_) == CUDA_SUCCESS);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* address() { return device_ != 0 ? reinterpret_cast<void*>(device_) : host_.data(); }
  ucs_memory_type_t type() const { return device_ != 0 ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST; }

  void fill(unsigned seed) {
    std::vector<unsigned char> data = pattern(seed);
    if (device_ != 0)
      CHECK(cuMemcpyHtoD(device_, data.data(), bytes_) == CUDA_SUCCESS);
    else
      host_ = data;
  }
  bool holds(unsigned seed) {
    std::vector<unsigned char> data(host_);
    if (device_ != 0) {
      data.resize(bytes_);
      CHECK(cuMemcpyDtoH(data.data(), device_, bytes_) == CUDA_SUCCESS);
    }
    return data == pattern(seed);
  }

 private:
  std::vector<unsigned char> pattern(unsigned seed) const {
    std::vector<unsigned char> data(bytes_);
    for (unsigned char& byte : data) byte = static_cast<unsigned char>((seed = seed * 1664525u + 1013904223u) >> 24);
    return data;
  }

  size_t bytes_;
  CUdeviceptr device_ = 0;
  std::vector<unsigned char> host_;
};

class Peer {
 public:
  explicit Peer(int socket) : socket_(socket) {
    ucp_config_t* config;
    CHECK(ucp_config_read(nullptr, nullptr, &config) == UCS_OK);
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA;
    CHECK(ucp_init(&params, config, &context_) == UCS_OK);
    ucp_config_release(config);
    ucp_worker_params_t worker = {};
    CHECK(ucp_worker_create(context_, &worker, &worker_) == UCS_OK);
  }
  ~Peer() {
    if (endpoint_ != nullptr) {
      ucp_request_param_t flush = {};
      wait(ucp_ep_close_nbx(endpoint_, &flush));
      meet();
    }
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  bool knows_devices() const {
    ucp_context_attr_t attributes = {};
    attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    CHECK(ucp_context_query(context_, &attributes) == UCS_OK);
    return (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
  }

  void connect() {
    ucp_address_t* mine;
    size_t bytes;
    CHECK(ucp_worker_get_address(worker_, &mine, &bytes) == UCS_OK);
    send_to_peer(mine, bytes);
    ucp_worker_release_address(worker_, mine);
    const std::vector<char> theirs = receive_from_peer();
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(theirs.data());
    CHECK(ucp_ep_create(worker_, &params, &endpoint_) == UCS_OK);
    ucp_am_handler_param_t handler = {};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = 1;
    handler.cb = arrived;
    handler.arg = this;
    CHECK(ucp_worker_set_am_recv_handler(worker_, &handler) == UCS_OK);
  }

  // Where the next active message goes.
  void expect(Memory* memory) { target_ = memory; }

  // The process that starts: sends its memory, or fills it by get.
  void start(const Case& c, Memory* memory) {
    ucp_request_param_t plain = {};
    if (c.verb == Verb::tag) return wait(ucp_tag_send_nbx(endpoint_, memory->address(), c.bytes, 7, &plain));
    if (c.verb == Verb::active_message)
      return wait(ucp_am_send_nbx(endpoint_, 1, nullptr, 0, memory->address(), c.bytes, &plain));
    const std::vector<char> message = receive_from_peer();
    uint64_t address;
    std::memcpy(&address, message.data(), sizeof address);
    ucp_rkey_h key;
    CHECK(ucp_ep_rkey_unpack(endpoint_, message.data() + sizeof address, &key) == UCS_OK);
    if (c.verb == Verb::put)
      wait(ucp_put_nbx(endpoint_, memory->address(), c.bytes, address, key, &plain));
    else
      wait(ucp_get_nbx(endpoint_, memory->address(), c.bytes, address, key, &plain));
    wait(ucp_ep_flush_nbx(endpoint_, &plain));
    ucp_rkey_destroy(key);
    meet();
  }

  // The other one.
  void answer(const Case& c, Memory* memory) {
    ucp_request_param_t plain = {};
    if (c.verb == Verb::tag)
      return wait(ucp_tag_recv_nbx(worker_, memory->address(), c.bytes, 7, ~ucp_tag_t(0), &plain));
    if (c.verb == Verb::active_message) {
      while (target_ != nullptr) ucp_worker_progress(worker_);
      return;
    }
    ucp_mem_map_params_t map = {};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    map.address = memory->address();
    map.length = c.bytes;
    ucp_mem_h region;
    CHECK(ucp_mem_map(context_, &map, &region) == UCS_OK);
    ucp_mem_attr_t attributes = {};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE;
    CHECK(ucp_mem_query(region, &attributes) == UCS_OK);
    CHECK(attributes.mem_type == memory->type());
    void* key;
    size_t key_bytes;
    CHECK(ucp_rkey_pack(context_, region, &key, &key_bytes) == UCS_OK);
    const uint64_t address = reinterpret_cast<uint64_t>(memory->address());
    std::vector<char> message(sizeof address + key_bytes);
    std::memcpy(message.data(), &address, sizeof address);
    std::memcpy(message.data() + sizeof address, key, key_bytes);
    ucp_rkey_buffer_release(key);
    send_to_peer(message.data(), message.size());
    meet();
    CHECK(ucp_mem_unmap(context_, region) == UCS_OK);
  }

  // Both come here; each moves its worker on until the other one has come too.
  void meet() {
    char byte = 0;
    CHECK(write(socket_, &byte, 1) == 1);
    await();
    CHECK(read(socket_, &byte, 1) == 1);
  }

 private:
  static ucs_status_t arrived(void* self, const void*, size_t, void* data, size_t bytes,
                              const ucp_am_recv_param_t* param) {
    Peer* peer = static_cast<Peer*>(self);
    CHECK(peer->target_ != nullptr);
    ucp_request_param_t receive = {};
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
      receive.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
      receive.cb.recv_am = [](void* request, ucs_status_t status, size_t, void* peer) {
        CHECK(status == UCS_OK);
        static_cast<Peer*>(peer)->target_ = nullptr;
        ucp_request_free(request);
      };
      receive.user_data = peer;
      ucs_status_ptr_t request = ucp_am_recv_data_nbx(peer->worker_, data, peer->target_->address(), bytes, &receive);
      CHECK(!UCS_PTR_IS_ERR(request));
      if (request == nullptr) peer->target_ = nullptr;
      return UCS_OK;
    }
    // Short ones come in memory of UCX's own.
    if (peer->target_->type() == UCS_MEMORY_TYPE_CUDA)
      CHECK(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(peer->target_->address()), data, bytes) == CUDA_SUCCESS);
    else
      std::memcpy(peer->target_->address(), data, bytes);
    peer->target_ = nullptr;
    return UCS_OK;
  }

  void wait(ucs_status_ptr_t request) {
    CHECK(!UCS_PTR_IS_ERR(request));
    if (request == nullptr) return;
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    CHECK(status == UCS_OK);
    ucp_request_free(request);
  }

  void await() {
    pollfd readable = {socket_, POLLIN, 0};
    while (poll(&readable, 1, 0) == 0) ucp_worker_progress(worker_);
  }
  void send_to_peer(const void* data, size_t bytes) {
    CHECK(write(socket_, &bytes, sizeof bytes) == ssize_t(sizeof bytes));
    CHECK(write(socket_, data, bytes) == ssize_t(bytes));
  }
  std::vector<char> receive_from_peer() {
    size_t bytes;
    await();
    CHECK(read(socket_, &bytes, sizeof bytes) == ssize_t(sizeof bytes));
    std::vector<char> data(bytes);
    CHECK(recv(socket_, data.data(), bytes, MSG_WAITALL) == ssize_t(bytes));
    return data;
  }

  int socket_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  Memory* target_ = nullptr;  // of the active message that is awaited
};

int run(int socket, bool starts) {
  side = starts ? "the one that starts" : "the one that answers";
  CUdevice device;
  CUcontext context;
  CHECK(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  const auto begin_context = [&] {
    CHECK(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS);
  };
  if (starts) begin_context();
  {
    Peer peer(socket);
    if (!starts) begin_context();  // after UCX has started
    if (!peer.knows_devices()) {
      if (starts) std::printf("SKIP ucx_test: this UCX (%s) has no CUDA\n", ucp_get_version_string());
      return 77;
    }
    peer.connect();
    unsigned seed = 1;
    for (const Case& c : cases()) {
      Memory memory(starts ? c.device_here : c.device_there, c.bytes);
      const bool reads = starts ? c.verb == Verb::get : c.verb != Verb::get;
      memory.fill(reads ? 0 : ++seed);
      if (reads) ++seed;
      if (!starts && c.verb == Verb::active_message) peer.expect(&memory);
      peer.meet();
      if (starts)
        peer.start(c, &memory);
      else
        peer.answer(c, &memory);
      const bool right = memory.holds(seed);
      peer.meet();
      if (reads || !right)
        std::printf("%s UCX %s: %s, from %s to %s memory, %zu bytes\n", right ? "PASS" : "FAIL",
                    ucp_get_version_string(), kVerbs[int(c.verb)],
                    (c.verb == Verb::get ? c.device_there : c.device_here) ? "device" : "host",
                    (c.verb == Verb::get ? c.device_here : c.device_there) ? "device" : "host", c.bytes);
      CHECK(right);
    }
  }
  CHECK(cuDevicePrimaryCtxRelease(device) == CUDA_SUCCESS);
  return 0;
}

}  // namespace

int main() {
  int ends[2];
  setlinebuf(stdout);  // both processes print
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  alarm(120);  // a hang is a failure
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    close(ends[0]);
    return run(ends[1], false);
  }
  close(ends[1]);
  const int mine = run(ends[0], true);
  std::fflush(stdout);
  int status = 0;
  waitpid(child, &status, 0);
  const int theirs = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  return mine != 0 ? mine : theirs;
}
