// Status: how every function of ours that can fail says so.
//
// `unsupported` is not an error: it is returned before anything was sent, alike on all ranks, and means that the
// component beneath is to run. The first function that decides that something is an error logs it; its callers only
// pass the status on.
#pragma once

namespace gpurdma {

enum class [[nodiscard]] Status : int{
    ok = 0,
    unsupported = 1,  // not ours to run
    no_memory = 2,    // memory of the host ran out
    peer_lost = 3,    // a peer died or cannot be reached any more
    deadline = 4,     // the deadline setting expired
    remote = 5,       // a peer failed and said so: its messages came marked
    closed = 6,       // an earlier failure closed this communicator
    invalid = 7,      // an argument or a setting is out of range
    transport = 8,    // UCX reported an error
    gpu = 9,          // a GPU or its driver reported an error
};

// One lower-case phrase that names the status, for logs and for error strings.
const char* text(Status status);

}  // namespace gpurdma
