// Case places: which case every worker is at, in a file that outlives the process.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "properties/tally.h"

namespace kvcheck::properties {

/// A small JSON file that is mapped into memory: noting a place costs a few stores, and whatever
/// ends the process, the file says where each worker was.
class CasePlaces {
 public:
  /// Creates or replaces the file.
  /// \throws std::filesystem::filesystem_error naming the file
  CasePlaces(const std::filesystem::path& file, const std::string& target, std::uint64_t seed,
             std::size_t workers);
  ~CasePlaces();
  CasePlaces(const CasePlaces&) = delete;
  CasePlaces& operator=(const CasePlaces&) = delete;

  /// Safe from several threads, each with a worker number of its own.
  void note(std::size_t worker, const Origin& origin);

 private:
  std::vector<std::size_t> places_;  // Where each worker's fields begin in the file.
  char* text_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace kvcheck::properties
