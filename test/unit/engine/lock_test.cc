#include "engine/lock.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace gpurdma {
namespace {

TEST(Lock, TryFailsWhileHeld) {
  Lock lock;
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
}

TEST(Lock, OneThreadAtATime) {
  Lock lock;
  long guarded = 0, tried = 0;  // not atomic: the thread sanitizer and the sum show a lock that lets two in
  constexpr int kThreads = 4, kRounds = 5000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        lock.lock();
        ++guarded;
        lock.unlock();
        if (lock.try_lock()) {
          ++tried;
          ++guarded;
          lock.unlock();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(guarded, long(kThreads) * kRounds + tried);
}

}  // namespace
}  // namespace gpurdma
