// UcxTransport: messages as UCP active messages, on a context and worker of our own, with one endpoint per peer
// process.
//
// UCX starts when address() is first called, connect() makes an endpoint each time, and both go in the reverse order
// when the transport does. Why active messages and not tags: the receiver reduces straight out of
// UCX's memory, and matching is the engine's own (decisions.md). Not thread-safe.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "transport/transport.h"
#include "transport/ucx_worker.h"

namespace gpurdma {

class UcxTransport final : public Transport {
 public:
  explicit UcxTransport(bool warns_of_tcp = true);
  ~UcxTransport() override;  // flushes what UCX has queued, then closes; bounded by kCloseSeconds

  void attach(Inbox* inbox) override { inbox_ = inbox; }
  Status address(Span<const char>* bytes) override;
  Status connect(Span<const char> address, PeerId* peer) override;
  Path path(PeerId peer) const override { return endpoints_[peer].path; }
  Sent send(PeerId peer, const Header& header, const void* data, size_t bytes, Token token) override;
  Sent fetch(void* offer, void* data, size_t bytes, Token token) override;
  bool takes_gpu_memory(PeerId) const override { return worker_.knows_gpu_memory(); }
  Sent send_from_gpu(PeerId peer, const Header& header, const void* data, size_t bytes, Token token) override;
  bool takes_gpu_memory(void*) const override { return worker_.knows_gpu_memory(); }
  Sent fetch_to_gpu(void* offer, void* data, size_t bytes, Token token) override;
  void* reserve(PeerId, size_t) override { return nullptr; }  // UCX has slots of its own
  void commit(PeerId, const Header&, size_t) override {}
  void refuse(void* offer) override;
  int progress() override;
  void check_peers() override {}  // see router.h
  void abandon(PeerId peer) override;

 private:
  struct Endpoint {
    UcxTransport* transport;
    PeerId id;
    uint32_t pid;
    ucp_ep_h handle;
    Path path;
    bool lost;
  };
  // A header as it mostly is, so that a small message with UCX's own words fits one cache line. Holds operations with
  // zeros between the class and the lower 30 bits, positions below 2^10, ranks below 2^20.
  struct ShortHeader {
    uint32_t comm;
    uint32_t operation;             // 2 bits of class, 30 of number
    uint32_t kind_position_source;  // 2, 10 and 20 bits

    bool pack(const Header& header);
    Header unpack() const;
  };
  // What a message in flight needs until it ends.
  struct Flight {
    UcxTransport* transport;
    Flight* next;  // among those that are free, or deferred
    Token token;
    PeerId peer;
    const void* data;
    size_t bytes;
    ucs_memory_type_t memory;
    bool is_short;
    ShortHeader short_header;
    Header header;  // where it does not fit the short one
  };

  Status start();
  ucs_status_t open(Endpoint& endpoint, const ucp_address_t* address);
  void say_tcp(const Endpoint& endpoint);
  Flight* free_flight();
  Sent send(PeerId peer, const Header& header, const void* data, size_t bytes, Token token, ucs_memory_type_t memory);
  Sent fetch(void* offer, void* data, size_t bytes, Token token, ucs_memory_type_t memory);
  ucs_status_ptr_t post(Flight& flight);
  void defer(Flight* flight);
  void send_deferred();
  void ended(Flight* flight, ucs_status_t status);
  void lose(Endpoint& endpoint);
  void close(std::vector<ucs_status_ptr_t>* closing, Endpoint& endpoint);

  static ucs_status_t on_message(void* transport, const void* header, size_t header_bytes, void* data, size_t bytes,
                                 const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* flight);
  static void on_fetched(void* request, ucs_status_t status, size_t bytes, void* flight);
  static void on_error(void* endpoint, ucp_ep_h handle, ucs_status_t status);

  bool warns_of_tcp_;  // until it has
  Inbox* inbox_ = nullptr;
  Status started_ = Status::unsupported;  // not tried yet
  UcxWorker worker_;
  std::vector<char> address_;
  std::deque<Endpoint> endpoints_;  // by PeerId
  std::vector<PeerId> abandoned_;   // to be closed by progress()
  std::deque<Flight> flights_;
  void* delivering_ = nullptr;  // the offer that on_message is handing over
  Flight* free_ = nullptr;
  // Messages over TCP that were asked for from inside UCX's callbacks. Sending there to a peer that has just died
  // closes the connection while UCX 1.13 still has events of it to handle, which ends in an assertion.
  Flight *deferred_ = nullptr, *last_deferred_ = nullptr;
  bool inside_ = false;  // ucp_worker_progress
};

}  // namespace gpurdma
