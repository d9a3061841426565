// Several writers at once, in threads and in processes, and writers that are killed.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <set>
#include <thread>

#include "core/base/files.h"
#include "core/store/store.h"

namespace writers_test {

using namespace cutaway;
using store::Store;

namespace {

std::string content(std::mt19937_64& random, size_t n) {
  std::string out(n, '\0');
  for (size_t i = 0; i < n; i += 8) {
    const uint64_t word = random();
    for (size_t j = i; j < std::min(n, i + 8); ++j) out[j] = static_cast<char>(word >> (8 * (j - i)));
  }
  return out;
}

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

/// The blobs that every writer of one seed writes: small ones, and some that take several writes.
std::vector<std::string> contents(unsigned seed, int n) {
  std::mt19937_64 random(seed);
  std::vector<std::string> out;
  for (int i = 0; i < n; ++i) out.push_back(content(random, i % 5 == 0 ? 100'000 + random() % 1'000'000 : random() % 3000));
  return out;
}

/// Returns whether everything went well: doctest's checks are for one thread and one process.
bool write_all_of(Store store, const std::vector<std::string>& all, unsigned order) {
  std::mt19937 random(order);
  std::vector<size_t> positions(all.size());
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = i;
  std::shuffle(positions.begin(), positions.end(), random);
  for (size_t i : positions) {
    base::Digest digest;
    if (i % 2 == 0) {
      auto put = store.put(bytes(all[i]));
      if (!put.ok()) return false;
      digest = *put;
    } else {
      auto writer = store.writer();
      if (!writer.ok() || !(*writer)->add(bytes(all[i])).ok()) return false;
      auto finished = (*writer)->finish();
      if (!finished.ok()) return false;
      digest = *finished;
    }
    auto blob = store.get(digest);   // while the others write the same
    if (!blob.ok() || blob->size() != all[i].size()) return false;
    if (!store.put_record("latest", digest.hex()).ok()) return false;
    auto record = store.get_record("latest");
    if (!record.ok() || record->size() != 32) return false;
  }
  return true;
}

void check_whole(const Store& store, const std::vector<std::string>& all) {
  std::set<std::string> distinct(all.begin(), all.end());
  const auto listed = *store.list();
  CHECK(listed.size() == distinct.size());
  for (const auto& blob : listed) CHECK(store.verify(blob.digest, blob.bytes).ok());
  for (const auto& text : distinct) CHECK(store.contains(base::digest_text(text)));
}

}  // namespace

TEST_CASE("store: eight threads write the same blobs") {
  const auto dir = std::move(base::TemporaryDirectory::make("cutaway-threads-")).value();
  const Store store = std::move(Store::open(dir.path(), Store::Open::create, store::Durability::fast)).value();
  const auto all = contents(1, 40);
  std::vector<char> good(8, 0);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) threads.emplace_back([&, t] { good[t] = write_all_of(store, all, t); });
  for (auto& thread : threads) thread.join();
  for (char g : good) CHECK(g);
  check_whole(store, all);
}

TEST_CASE("store: four processes write the same blobs") {
  const auto dir = std::move(base::TemporaryDirectory::make("cutaway-processes-")).value();
  const auto all = contents(2, 40);
  std::vector<pid_t> children;
  for (unsigned p = 0; p < 4; ++p) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      auto store = Store::open(dir.path(), Store::Open::create, p % 2 ? store::Durability::fast : store::Durability::durable);
      _exit(store.ok() && write_all_of(*store, all, p) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  check_whole(std::move(Store::open(dir.path(), Store::Open::existing)).value(), all);
}

TEST_CASE("store: collecting beside writers loses nothing that is kept") {
  const auto dir = std::move(base::TemporaryDirectory::make("cutaway-collect-")).value();
  Store store = std::move(Store::open(dir.path(), Store::Open::create, store::Durability::fast)).value();
  const auto all = contents(3, 30);
  std::vector<base::Digest> keep;
  for (const auto& text : all) keep.push_back(base::digest_text(text));
  std::atomic<bool> stop{false}, good{true};
  std::thread collector([&] {
    Store mine = store;
    while (!stop) {
      if (!mine.put(bytes("garbage")).ok() || !mine.collect(keep).ok()) good = false;
    }
  });
  for (unsigned round = 0; round < 4; ++round) CHECK(write_all_of(store, all, round));
  stop = true;
  collector.join();
  CHECK(good);
  for (const auto& text : all) CHECK(store.verify(base::digest_text(text)).ok());
}

TEST_CASE("store: killed 200 times while writing, it has everything that was acknowledged") {
  const auto dir = std::move(base::TemporaryDirectory::make("cutaway-kill-")).value();
  std::mt19937_64 random(std::random_device{}());
  std::vector<base::Digest> acknowledged;
  std::vector<std::string> acknowledged_records;
  for (unsigned round = 0; round < 200; ++round) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const uint64_t seed = random();
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      close(ends[0]);
      std::mt19937_64 mine(seed);
      auto store = Store::open(dir.path(), Store::Open::create, round % 2 ? store::Durability::durable : store::Durability::fast);
      if (!store.ok()) _exit(1);
      for (uint64_t i = 0;; ++i) {
        const std::string text = content(mine, mine() % 4 == 0 ? mine() % 400'000 : mine() % 2000);
        base::Digest digest;
        if (mine() % 2) {
          auto put = store->put(bytes(text));
          if (!put.ok()) _exit(1);
          digest = *put;
        } else {
          auto writer = store->writer();
          if (!writer.ok() || !(*writer)->add(bytes(text).first(text.size() / 2)).ok() || !(*writer)->add(bytes(text).subspan(text.size() / 2)).ok()) _exit(1);
          auto finished = (*writer)->finish();
          if (!finished.ok()) _exit(1);
          digest = *finished;
        }
        const std::string name = "round/" + std::to_string(round) + "-" + std::to_string(i);
        if (!store->put_record(name, digest.hex()).ok()) _exit(1);
        // One write of 32 bytes: a pipe takes it whole or not at all.
        if (write(ends[1], digest.hex().data(), 32) != 32) _exit(1);
      }
    }
    close(ends[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    REQUIRE(kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));   // it did not end by an error of its own
    std::string said;
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<size_t>(n));
    close(ends[0]);
    REQUIRE(said.size() % 32 == 0);
    for (size_t at = 0; at < said.size(); at += 32) {
      acknowledged.push_back(*base::Digest::parse(said.substr(at, 32)));
      acknowledged_records.push_back("round/" + std::to_string(round) + "-" + std::to_string(at / 32));
    }
    if (round % 10 == 9) {
      const auto store = Store::open(dir.path(), Store::Open::existing);
      REQUIRE(store.ok());
      REQUIRE(store->list().ok());
    }
  }
  Store store = std::move(Store::open(dir.path(), Store::Open::existing)).value();
  MESSAGE(acknowledged.size(), " blobs acknowledged");
  CHECK(acknowledged.size() > 50);
  size_t damaged = 0, lost = 0, lost_records = 0;
  for (const auto& blob : *store.list()) damaged += !store.verify(blob.digest).ok();
  for (const auto& digest : acknowledged) lost += !store.verify(digest).ok();
  for (size_t i = 0; i < acknowledged.size(); ++i) {
    const auto record = store.get_record(acknowledged_records[i]);
    lost_records += !record.ok() || *record != acknowledged[i].hex();
  }
  CHECK(damaged == 0);
  CHECK(lost == 0);
  CHECK(lost_records == 0);
  CHECK(store.collect(acknowledged).ok());
  for (const auto& digest : acknowledged) CHECK(store.contains(digest));
}

}  // namespace writers_test
