// The server side of the protocol: a Target of this program, for a tool at the other end.
#pragma once

#include "kernels/target.h"

namespace kvcheck::kernels {

/// Descriptors that frames are read from and written to.
struct FrameStreams {
  int requests = 0;
  int answers = 1;
};

/// The standard streams of this process, for frames alone: from here on the standard input is
/// empty, and what is printed goes to standard error. Call it before anything prints.
/// \throws std::runtime_error where the system gives no further descriptors
FrameStreams take_standard_streams();

/// Answers requests on behalf of the target until they end. A refusal is an answer. A failure, an
/// exception of the target or a request that breaks the protocol is answered with an error, which
/// ends the service: the other end starts it afresh. The descriptors stay the caller's.
/// \return the exit code of the process: 0 when the requests have ended, else 1
int serve(Target& target, const FrameStreams& streams);

}  // namespace kvcheck::kernels
