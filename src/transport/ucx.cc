#include "transport/ucx.h"

#include <unistd.h>

#include <cstring>

#include "base/clock.h"
#include "base/log.h"

namespace gpurdma {
namespace {

constexpr unsigned kMessage = 0;  // the one active message that there is
constexpr double kCloseSeconds = 5;
// Most bytes that one slot of UCX's shared memory carries beside our header and UCX's (ucx_worker.cc sets the slot's
// size).
constexpr size_t kSharedMemorySlot = 32768;

}  // namespace

UcxTransport::UcxTransport(bool warns_of_tcp) : warns_of_tcp_(warns_of_tcp) {}

UcxTransport::~UcxTransport() {
  if (!worker_.started()) return;
  std::vector<ucs_status_ptr_t> closing;
  for (Endpoint& endpoint : endpoints_)
    if (endpoint.handle) close(&closing, endpoint);
  const uint64_t begin = clock::ticks();
  for (ucs_status_ptr_t request : closing) {
    while (ucp_request_check_status(request) == UCS_INPROGRESS &&
           clock::seconds(clock::ticks() - begin) < kCloseSeconds)
      ucp_worker_progress(worker_.get());
    if (ucp_request_check_status(request) == UCS_INPROGRESS)
      GPURDMA_LOG(warn, "an endpoint did not close within %.0f s", kCloseSeconds);
    ucp_request_free(request);
  }
}

Status UcxTransport::start() {
  if (started_ != Status::unsupported) return started_;
  started_ = worker_.start();
  if (started_ != Status::ok) return started_;
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessage;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = on_message;
  handler.arg = this;
  ucs_status_t status = ucp_worker_set_am_recv_handler(worker_.get(), &handler);
  if (status != UCS_OK) {
    GPURDMA_LOG(error, "UCX refused a message handler: %s", ucs_status_string(status));
    return started_ = Status::transport;
  }
  ucp_address_t* ucx_address = nullptr;
  size_t bytes = 0;
  status = ucp_worker_get_address(worker_.get(), &ucx_address, &bytes);
  if (status != UCS_OK) {
    GPURDMA_LOG(error, "UCX gave no address: %s", ucs_status_string(status));
    return started_ = Status::transport;
  }
  const auto pid = uint32_t(getpid());
  address_.resize(sizeof pid + bytes);
  std::memcpy(address_.data(), &pid, sizeof pid);
  std::memcpy(address_.data() + sizeof pid, ucx_address, bytes);
  ucp_worker_release_address(worker_.get(), ucx_address);
  return Status::ok;
}

Status UcxTransport::address(Span<const char>* bytes) {
  const Status status = start();
  if (status == Status::ok) *bytes = {address_.data(), address_.size()};
  return status;
}

// ---- endpoints ----

Status UcxTransport::connect(Span<const char> address, PeerId* peer) {
  const Status status = start();
  if (status != Status::ok) return status;
  uint32_t pid;  // for messages to the user
  if (address.size() <= sizeof pid) return Status::invalid;
  std::memcpy(&pid, address.data(), sizeof pid);
  const PeerId id = PeerId(endpoints_.size());
  endpoints_.push_back({this, id, pid, nullptr, Path::self, false});
  Endpoint& endpoint = endpoints_.back();
  const auto* ucx_address = reinterpret_cast<const ucp_address_t*>(address.data() + sizeof pid);
  const ucs_status_t opened = open(endpoint, ucx_address);
  if (opened != UCS_OK) {
    GPURDMA_LOG(error, "no way to process %u: %s; do both ends allow the same transports (UCX_TLS, UCX_NET_DEVICES)?",
                pid, ucs_status_string(opened));
    endpoint.lost = true;
    return Status::peer_lost;
  }
  if (endpoint.path == Path::tcp) say_tcp(endpoint);
  *peer = id;
  return Status::ok;
}

// TCP takes the bytes through the kernel and both CPUs, which is what a site wants to know, once.
void UcxTransport::say_tcp(const Endpoint& endpoint) {
  if (warns_of_tcp_)
    GPURDMA_LOG(
        warn,
        "process %u is reached over TCP, and others may be: bytes pass the kernel and both CPUs. Compare ucx_info "
        "-d with UCX_TLS and UCX_NET_DEVICES if this node has RDMA",
        endpoint.pid);
  else
    GPURDMA_LOG(info, "process %u is reached over TCP: bytes pass the kernel and both CPUs", endpoint.pid);
  warns_of_tcp_ = false;
}

ucs_status_t UcxTransport::open(Endpoint& endpoint, const ucp_address_t* address) {
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = address;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;  // also what allows to close while messages to a dead peer are queued
  params.err_handler.cb = on_error;
  params.err_handler.arg = &endpoint;
  const ucs_status_t status = ucp_ep_create(worker_.get(), &params, &endpoint.handle);
  if (status == UCS_OK) endpoint.path = path_of(endpoint.handle);
  return status;
}

void UcxTransport::close(std::vector<ucs_status_ptr_t>* closing, Endpoint& endpoint) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = endpoint.lost ? unsigned(UCP_EP_CLOSE_FLAG_FORCE) : 0u;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint.handle, &param);
  endpoint.handle = nullptr;
  if (UCS_PTR_IS_PTR(request)) closing->push_back(request);
}

void UcxTransport::lose(Endpoint& endpoint) {
  if (endpoint.lost) return;
  abandon(endpoint.id);
  if (inbox_) inbox_->lost(endpoint.id);
}

void UcxTransport::on_error(void* arg, ucp_ep_h, ucs_status_t status) {
  Endpoint& endpoint = *static_cast<Endpoint*>(arg);
  if (!endpoint.lost && endpoint.transport->inbox_)
    GPURDMA_LOG(error, "process %u was lost over %s: %s", endpoint.pid, name_of(endpoint.path),
                ucs_status_string(status));
  endpoint.transport->lose(endpoint);
}

void UcxTransport::abandon(PeerId peer) {
  Endpoint& endpoint = endpoints_[peer];
  if (endpoint.lost) return;
  endpoint.lost = true;
  abandoned_.push_back(peer);
}

int UcxTransport::progress() {
  if (!worker_.started()) return 0;
  while (!abandoned_.empty()) {
    Endpoint& endpoint = endpoints_[abandoned_.back()];
    abandoned_.pop_back();
    std::vector<ucs_status_ptr_t> closing;
    if (endpoint.handle) close(&closing, endpoint);
    for (ucs_status_ptr_t request : closing) ucp_request_free(request);
  }
  inside_ = true;
  const int events = int(ucp_worker_progress(worker_.get()));
  inside_ = false;
  if (deferred_) send_deferred();
  return events;
}

// ---- messages out ----

UcxTransport::Flight* UcxTransport::free_flight() {
  if (!free_) {
    flights_.emplace_back();
    free_ = &flights_.back();
    free_->transport = this;
    free_->next = nullptr;
  }
  return free_;
}

bool UcxTransport::ShortHeader::pack(const Header& h) {
  if (h.operation >> 30 << 34 != 0 || h.position >> 10 != 0 || h.source >> 20 != 0) return false;
  comm = h.comm;
  operation = uint32_t(h.operation >> 62) << 30 | uint32_t(h.operation & 0x3FFFFFFF);
  kind_position_source = uint32_t(h.kind) << 30 | h.position << 20 | h.source;
  return true;
}

Header UcxTransport::ShortHeader::unpack() const {
  return {uint64_t(operation >> 30) << 62 | (operation & 0x3FFFFFFF), comm, kind_position_source & 0xFFFFF,
          kind_position_source >> 20 & 0x3FF, Header::Kind(kind_position_source >> 30)};
}

Transport::Sent UcxTransport::send(PeerId peer, const Header& header, const void* data, size_t bytes, Token token) {
  return send(peer, header, data, bytes, token, UCS_MEMORY_TYPE_HOST);
}

Transport::Sent UcxTransport::send_from_gpu(PeerId peer, const Header& header, const void* data, size_t bytes,
                                            Token token) {
  return send(peer, header, data, bytes, token, UCS_MEMORY_TYPE_CUDA);
}

Transport::Sent UcxTransport::send(PeerId peer, const Header& header, const void* data, size_t bytes, Token token,
                                   ucs_memory_type_t memory) {
  const Endpoint& endpoint = endpoints_[peer];
  if (endpoint.lost) return Sent::failed;
  Flight* flight = free_flight();
  flight->token = token;
  flight->peer = peer;
  flight->data = data;
  flight->bytes = bytes;
  flight->memory = memory;
  flight->is_short = flight->short_header.pack(header);
  if (!flight->is_short) flight->header = header;
  if (inside_ && endpoint.path == Path::tcp) {
    free_ = flight->next;
    defer(flight);
    return Sent::pending;
  }
  const ucs_status_ptr_t request = post(*flight);
  if (request == nullptr) return Sent::done;
  if (UCS_PTR_IS_ERR(request)) {
    GPURDMA_LOG(error, "a message to process %u failed: %s", endpoint.pid, ucs_status_string(UCS_PTR_STATUS(request)));
    return Sent::failed;
  }
  free_ = flight->next;
  return Sent::pending;
}

ucs_status_ptr_t UcxTransport::post(Flight& flight) {
  const Endpoint& endpoint = endpoints_[flight.peer];
  const size_t eager = endpoint.path == Path::shared_memory ? kSharedMemorySlot : kInline;
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS |
                       UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.cb.send = on_sent;
  param.user_data = &flight;
  param.memory_type = flight.memory;
  param.flags = flight.bytes <= eager ? unsigned(UCP_AM_SEND_FLAG_EAGER) : 0u;
  const void* header = flight.is_short ? static_cast<const void*>(&flight.short_header) : &flight.header;
  const size_t header_bytes = flight.is_short ? sizeof flight.short_header : sizeof flight.header;
  return ucp_am_send_nbx(endpoint.handle, kMessage, header, header_bytes, flight.data, flight.bytes, &param);
}

void UcxTransport::defer(Flight* flight) {
  flight->next = nullptr;
  (deferred_ ? last_deferred_->next : deferred_) = flight;
  last_deferred_ = flight;
}

void UcxTransport::send_deferred() {
  while (Flight* flight = deferred_) {
    deferred_ = flight->next;
    const Endpoint& endpoint = endpoints_[flight->peer];
    const ucs_status_ptr_t request = endpoint.lost ? UCS_STATUS_PTR(UCS_ERR_CANCELED) : post(*flight);
    if (!UCS_PTR_IS_PTR(request)) ended(flight, UCS_PTR_STATUS(request));
  }
}

void UcxTransport::ended(Flight* flight, ucs_status_t status) {
  const Token token = flight->token;
  flight->next = free_;
  free_ = flight;
  if (token == kNoToken || !inbox_) return;
  inbox_->completed(token, status == UCS_OK                                                   ? Status::ok
                           : status == UCS_ERR_CANCELED || status == UCS_ERR_ENDPOINT_TIMEOUT ? Status::peer_lost
                                                                                              : Status::transport);
}

void UcxTransport::on_sent(void* request, ucs_status_t status, void* flight) {
  ucp_request_free(request);
  static_cast<Flight*>(flight)->transport->ended(static_cast<Flight*>(flight), status);
}

// ---- messages in ----

ucs_status_t UcxTransport::on_message(void* transport, const void* header_at, size_t header_bytes, void* data,
                                      size_t bytes, const ucp_am_recv_param_t* param) {
  UcxTransport& self = *static_cast<UcxTransport*>(transport);
  Inbox* inbox = self.inbox_;
  if (!inbox) return UCS_OK;  // we are closing: dropped, an offer is refused thereby
  Header header;
  if (header_bytes == sizeof(ShortHeader)) {
    ShortHeader packed;
    std::memcpy(&packed, header_at, sizeof packed);
    header = packed.unpack();
  } else if (header_bytes == sizeof header) {
    std::memcpy(&header, header_at, sizeof header);
  } else {
    return UCS_OK;  // not ours
  }
  if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
    self.delivering_ = data;
    inbox->arrived(header, {nullptr, bytes, data});
    const bool refused = self.delivering_ == nullptr;
    self.delivering_ = nullptr;
    return refused ? UCS_OK : UCS_INPROGRESS;  // ours until fetched or refused
  }
  inbox->arrived(header, {data, bytes, nullptr});
  return UCS_OK;
}

Transport::Sent UcxTransport::fetch(void* offer, void* data, size_t bytes, Token token) {
  return fetch(offer, data, bytes, token, UCS_MEMORY_TYPE_HOST);
}

Transport::Sent UcxTransport::fetch_to_gpu(void* offer, void* data, size_t bytes, Token token) {
  return fetch(offer, data, bytes, token, UCS_MEMORY_TYPE_CUDA);
}

Transport::Sent UcxTransport::fetch(void* offer, void* data, size_t bytes, Token token, ucs_memory_type_t memory) {
  Flight* flight = free_flight();
  flight->token = token;
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.cb.recv_am = on_fetched;
  param.user_data = flight;
  param.memory_type = memory;
  const ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker_.get(), offer, data, bytes, &param);
  if (request == nullptr) return Sent::done;
  if (UCS_PTR_IS_ERR(request)) {
    GPURDMA_LOG(error, "fetching a message failed: %s", ucs_status_string(UCS_PTR_STATUS(request)));
    return Sent::failed;
  }
  free_ = flight->next;
  return Sent::pending;
}

void UcxTransport::on_fetched(void* request, ucs_status_t status, size_t, void* flight) {
  on_sent(request, status, flight);
}

// From inside on_message its return value says so; UCX would touch a descriptor that was released there.
void UcxTransport::refuse(void* offer) {
  if (offer == delivering_)
    delivering_ = nullptr;
  else
    ucp_am_data_release(worker_.get(), offer);
}

}  // namespace gpurdma
