// Threads share an engine under its lock, as they do in MPI_THREAD_MULTIPLE; for the thread sanitizer, too.
#include <atomic>
#include <deque>
#include <thread>

#include "test/unit/engine/rig.h"

namespace gpurdma {
namespace {

// The other rank: answers every message with the same elements, in a later progress.
class Echo final : public Transport {
 public:
  void attach(Inbox* inbox) override { inbox_ = inbox; }
  Status address(Span<const char>*) override { return Status::ok; }
  Status connect(Span<const char>, PeerId*) override { return Status::ok; }
  Path path(PeerId) const override { return Path::shared_memory; }
  Sent send(PeerId, const Header& header, const void* data, size_t bytes, Token) override {
    if (header.kind != Header::Kind::data) return Sent::done;
    const char* at = static_cast<const char*>(data);
    answers_.push_back({{header.operation, header.comm, 1, header.position, Header::Kind::data}, {at, at + bytes}});
    return Sent::done;
  }
  void* reserve(PeerId, size_t) override { return nullptr; }
  void commit(PeerId, const Header&, size_t) override {}
  Sent fetch(void*, void*, size_t, Token) override { return Sent::failed; }
  void refuse(void*) override {}
  int progress() override {
    if (answers_.empty()) return 0;
    const Answer answer = std::move(answers_.front());
    answers_.pop_front();
    inbox_->arrived(answer.header, {answer.payload.data(), answer.payload.size(), nullptr});
    return 1;
  }
  void check_peers() override {}
  void abandon(PeerId) override {}

 private:
  struct Answer {
    Header header;
    std::vector<char> payload;
  };
  Inbox* inbox_ = nullptr;
  std::deque<Answer> answers_;
};

void sum(void* dst, const void* left, const void* right, size_t count) {
  for (size_t i = 0; i < count; ++i)
    static_cast<int32_t*>(dst)[i] = static_cast<const int32_t*>(left)[i] + static_cast<const int32_t*>(right)[i];
}

TEST(Threads, WaitEachForTheirOwnOperations) {
  constexpr int kThreads = 4, kRounds = 300;
  Echo transport;
  Counters counters;
  Engine engine(transport, counters, {}, {});
  const Plan plan = plan_of(0, 2, [](Plan& p) {
    const Slice slot = p.scratch(8);
    p.send(1, in(0, 8));
    p.recv(slot, 1);
    p.reduce(out(0, 8), in(0, 8), slot);
  });
  std::atomic<bool> stop{false};
  std::thread progress([&] {  // as another thread's MPI calls do
    while (!stop) {
      if (!engine.try_lock()) continue;
      engine.progress();
      engine.unlock();
    }
  });
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      engine.lock();
      Communicator* comm = engine.new_communicator(0, 2, "thread", {});
      comm->link(1).state = Link::State::up;
      comm->link(1).handle = comm->handle;  // it is we who get the answer
      comm->oversubscribed = true;
      for (int round = 0; round < kRounds; ++round) {
        const Ints input(8, t + round);
        Ints output(8);
        gpurdma::Run* run = nullptr;
        const Status begun = engine.begin(plan, *comm, comm->next_call(CallClass::blocking),
                                          {input.data(), output.data(), 4, sum}, {}, &run);
        if (begun != Status::ok || engine.wait(*run, nullptr) != Status::ok || output != Ints(8, 2 * (t + round)))
          ++wrong;
      }
      engine.free_communicator(comm);
      engine.unlock();
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  progress.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(engine.active(), 0u);
}

}  // namespace
}  // namespace gpurdma
