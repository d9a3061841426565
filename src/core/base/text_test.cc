#include "core/base/text.h"

#include <doctest/doctest.h>

#include "core/base/places.h"

namespace text_test {

using namespace cutaway::base;

TEST_CASE("text: quoting keeps one line and a sane terminal") {
  CHECK(quote("plain") == "\"plain\"");
  CHECK(quote("a\"b\\c\nd\te") == "\"a\\\"b\\\\c\\nd\\te\"");
  CHECK(quote(std::string("\x1b[31m\0", 6)) == "\"\\x1b[31m\\x00\"");
  CHECK(quote("größe…") == "\"größe…\"");
  CHECK(quote("\xff" "a") == "\"\\xffa\"");
}

TEST_CASE("text: sizes and counts") {
  CHECK(human_bytes(0) == "0 bytes");
  CHECK(human_bytes(1) == "1 byte");
  CHECK(human_bytes(999) == "999 bytes");
  CHECK(human_bytes(1000) == "1.0 kB");
  CHECK(human_bytes(4096) == "4.1 kB");
  CHECK(human_bytes(268435456) == "268 MB");
  CHECK(human_bytes(999'999) == "1.0 MB");
  CHECK(human_bytes(UINT64_MAX) == "18 EB");
  CHECK(count_of(1, "blob") == "1 blob");
  CHECK(count_of(0, "blob") == "0 blobs");
  CHECK(join({"a", "b"}) == "a, b");
  CHECK(join({}) == "");
}

TEST_CASE("text: the nearest name") {
  const std::vector<std::string> backends = {"eager", "aot_eager", "inductor", "native"};
  CHECK(nearest_name("indutcor", backends) == "inductor");
  CHECK(nearest_name("Eager", backends) == "eager");
  CHECK(nearest_name("aoteager", backends) == "aot_eager");
  CHECK(nearest_name("ind", backends) == "inductor");
  CHECK(nearest_name("in", backends).empty());
  CHECK(nearest_name("xla", backends).empty());
  CHECK(nearest_name("", backends).empty());
  CHECK(nearest_name("x", {"y"}).empty());
  CHECK(did_you_mean("indutcor", backends) == "; did you mean \"inductor\"?");
  CHECK(did_you_mean("zzz", backends).empty());
}

TEST_CASE("text: utf-8") {
  for (const char* good : {"", "abc", "é", "…", "😀", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf"}) CHECK(is_utf8(good));
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xe2\x80", "a\xff"}) {
    CHECK_FALSE(is_utf8(bad));
  }
}

TEST_CASE("places: files are named from their package on, and folders stay private") {
  CHECK(package_relative("/home/somebody/secret/train.py") == "train.py");
  CHECK(package_relative("/home/me/lib/python3.11/site-packages/torch/nn/modules/linear.py") == "torch/nn/modules/linear.py");
  CHECK(package_relative("train.py") == "train.py");
  CHECK(package_relative("<string>") == "<string>");
  CHECK(without_private_paths("[\"/home/me/work\", \"/srv/x/y\"]") == "[\"work\", \"y\"]");
  CHECK(without_private_paths("a / b, 1/2, /tmp, https://torch.org/docs/x") == "a / b, 1/2, /tmp, https://torch.org/docs/x");
  CHECK(without_private_paths("runs /home/me/a.py: line 3") == "runs a.py: line 3");
  CHECK(without_private_paths("") == "");
}

}  // namespace text_test
