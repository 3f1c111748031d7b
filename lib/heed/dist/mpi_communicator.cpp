#include <mpi.h>

#include <algorithm>
#include <climits>
#include <exception>

#include "heed/base/error.h"
#include "heed/dist/communicator.h"

// This file and base/error.cpp are the module mpi.so. make_communicator() loads the module only under a launcher,
// because MPI's libraries alone take more than a millisecond to load.

namespace heed {
namespace {

/// The most bytes of one message: MPI counts in int.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

void check(int result, const char* what) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw Error(std::string("MPI: ") + what + ": " + std::string(text, static_cast<std::size_t>(length)));
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "cannot start");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  ~MpiCommunicator() override {
    if (std::uncaught_exceptions() == 0 || ends_together()) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void exchange(std::span<const Message> sends, std::span<const Message> receives) override {
    requests_.clear();
    for (const Message& message : receives)
      in_pieces(std::as_writable_bytes(message.numbers), [&](std::byte* bytes, int count) {
        check(MPI_Irecv(bytes, count, MPI_BYTE, message.rank, 0, MPI_COMM_WORLD, next_request()), "receiving");
      });
    for (const Message& message : sends)
      in_pieces(std::as_writable_bytes(message.numbers), [&](std::byte* bytes, int count) {
        check(MPI_Isend(bytes, count, MPI_BYTE, message.rank, 0, MPI_COMM_WORLD, next_request()), "sending");
      });
    check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), "exchanging");
  }

  void all_gather(std::span<std::byte> array, std::span<const Slice> parts) override {
    // MPI counts in int. The places of a large array are counted in units of a cache line; the rest of a part that is
    // no whole unit is sent on its own.
    const std::int64_t unit = std::ssize(array) <= INT_MAX ? 1 : 64;
    counts_.clear();
    places_.clear();
    for (const Slice& part : parts) {
      if (part.begin % unit != 0 && part.size() > 0)
        throw Error("internal: a part of a large array does not begin on a cache line");
      counts_.push_back(static_cast<int>(part.size() / unit));
      places_.push_back(static_cast<int>(part.begin / unit));
    }
    MPI_Datatype type = MPI_BYTE;
    if (unit > 1) {
      check(MPI_Type_contiguous(static_cast<int>(unit), MPI_BYTE, &type), "gathering");
      check(MPI_Type_commit(&type), "gathering");
    }
    check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, array.data(), counts_.data(), places_.data(), type,
                         MPI_COMM_WORLD),
          "gathering");
    if (unit == 1) return;
    MPI_Type_free(&type);
    for (std::size_t r = 0; r < parts.size(); ++r)
      if (const auto rest = static_cast<int>(parts[r].size() % unit); rest > 0)
        check(MPI_Bcast(array.data() + parts[r].end - rest, rest, MPI_BYTE, static_cast<int>(r), MPI_COMM_WORLD),
              "gathering");
  }

  void broadcast(std::span<std::byte> bytes) override {
    in_pieces(bytes, [&](std::byte* piece, int count) {
      check(MPI_Bcast(piece, count, MPI_BYTE, 0, MPI_COMM_WORLD), "broadcasting");
    });
  }

  std::int64_t largest(std::int64_t number) override {
    std::int64_t out = 0;
    check(MPI_Allreduce(&number, &out, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD), "agreeing");
    return out;
  }

 private:
  template <class Work>
  static void in_pieces(std::span<std::byte> bytes, Work work) {
    for (std::int64_t begin = 0; begin < std::ssize(bytes); begin += kMostBytes)
      work(bytes.data() + begin, static_cast<int>(std::min(kMostBytes, std::ssize(bytes) - begin)));
  }

  MPI_Request* next_request() {
    requests_.push_back(MPI_REQUEST_NULL);
    return &requests_.back();
  }

  int rank_ = 0, size_ = 1;
  std::vector<MPI_Request> requests_;
  std::vector<int> counts_, places_;
};

}  // namespace
}  // namespace heed

extern "C" __attribute__((visibility("default"))) heed::Communicator* heed_make_mpi_communicator() {
  return new heed::MpiCommunicator;
}
