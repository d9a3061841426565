#include "diagnosis/report/findings.h"

#include <doctest/doctest.h>

#include "core/base/json.h"

namespace cutaway::report::findings_test {
namespace {

Finding finding(std::string file, int64_t line) {
  Finding f;
  f.rule = "graph-break/print";
  f.rule_text = "The graph ends here.";
  f.title = "graph break: a, b";
  f.message = "100 % of it\ntry: less";
  f.spot = {std::move(file), "f", "print(x)", line};
  return f;
}

const base::Json& at(const base::Json& j, size_t i) { return (*j.as<base::Json::Array>())[i]; }

}  // namespace

TEST_CASE("findings: files inside the root are relative to it, others are file URIs, and names are escaped") {
  Findings all;
  all.list = {finding("/work/my code/train.py", 8), finding("/else where/ä.py", 0)};
  const base::Json log = base::Json::parse_or_null(sarif_text(all, "/work", "1.2.3"));
  const base::Json& run = at(*log.find("runs"), 0);
  const auto place = [&](size_t i) { return *at(*at(*run.find("results"), i).find("locations"), 0).find("physicalLocation"); };
  CHECK(place(0).find("artifactLocation")->text_or("uri") == "my%20code/train.py");
  CHECK(place(0).find("artifactLocation")->text_or("uriBaseId") == "%SRCROOT%");
  CHECK(place(1).find("artifactLocation")->text_or("uri") == "file:///else%20where/%C3%A4.py");
  CHECK(!place(1).find("artifactLocation")->find("uriBaseId"));
  CHECK(place(0).find("region")->integer_or("startLine") == 8);
  CHECK(place(1).find("region")->integer_or("startLine") == 1);   // a line that is not known; SARIF counts from 1
  CHECK(run.find("tool")->find("driver")->find("rules")->as<base::Json::Array>()->size() == 1);   // one rule, twice found
}

TEST_CASE("findings: a root is a folder, not the beginning of a name") {
  Findings all;
  all.list = {finding("/workshop/train.py", 1)};
  CHECK(github_text(all, "/work").find("file=/workshop/train.py,") != std::string::npos);
}

TEST_CASE("findings: a fingerprint does not depend on the line") {
  const auto print = [](int64_t line) {
    Findings all;
    all.list = {finding("/work/train.py", line)};
    const base::Json log = base::Json::parse_or_null(sarif_text(all, "/work", "1.2.3"));
    return at(*at(*log.find("runs"), 0).find("results"), 0).find("partialFingerprints")->text();
  };
  CHECK(print(3) == print(30));
}

TEST_CASE("findings: a workflow command is one line, whatever the text") {
  Findings all;
  all.list = {finding("/work/a,b:c.py", 3)};
  all.notes.emplace_back(Severity::note, "two\r\nlines");
  CHECK(github_text(all, "/work") ==
        "::warning file=a%2Cb%3Ac.py,line=3,title=Cutaway%3A graph break%3A a%2C b::100 %25 of it%0Atry: less\n"
        "::notice title=Cutaway::two%0D%0Alines\n");
}

}  // namespace cutaway::report::findings_test
