// `cutaway doctor`: versions, compilers, devices, backends, and what is missing and how to get it.
#pragma once
#include <string>
#include <vector>

#include "app/flows/workers.h"

namespace cutaway::flows {

struct DoctorFinding {
  std::string name;      ///< "torch"
  std::string value;     ///< "2.13.0"; empty: missing
  std::string detail;    ///< where it was found, or what it is for
  std::string remedy;    ///< when missing: what to do
  bool is_needed = false;
};
struct Diagnosis {
  std::vector<DoctorFinding> findings;
  std::vector<std::string> devices;
  bool is_healthy() const;   ///< nothing that is needed is missing
  std::string text() const;
  std::string to_json() const;
};
Diagnosis examine(const Programs&, const std::string& version);

}  // namespace cutaway::flows
