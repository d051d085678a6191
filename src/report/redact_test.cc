#include "report/redact.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

Redactor redactor() { return Redactor({"/runs/ann/oom.pickle", "logs/oom.pickle"}, {"ann", "gpu7"}); }

TEST(Redact, PathsKeepTheirLastPart) {
  EXPECT_EQ(redactor().text("File \"/home/ann/job/train.py\", line 3"), "File \"train.py\", line 3");
  EXPECT_EQ(redactor().text("next: oomscope show /runs/ann/oom.pickle --at oom"),
            "next: oomscope show oom.pickle --at oom");
  EXPECT_EQ(redactor().text("see logs/oom.pickle"), "see oom.pickle");
}

TEST(Redact, LibrariesKeepThePartBelowTheirFolder) {
  EXPECT_EQ(short_path("/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py"),
            "torch/nn/modules/module.py");
  EXPECT_EQ(short_path("/usr/lib/python3.12/threading.py"), "python3.12/threading.py");
}

TEST(Redact, NamesOfUsersAndHostsAreHidden) {
  EXPECT_EQ(redactor().text("ann ran it on gpu7 (10.0.12.7, node3.cluster.example.com)"),
            "[hidden] ran it on [hidden] ([hidden], [hidden])");
  EXPECT_EQ(redactor().text("mail bob@lab.edu"), "mail [hidden]");
  Redactor learning({}, {});
  learning.learn("/home/grace/x.py");
  EXPECT_EQ(learning.text("by grace, gracefully"), "by [hidden], gracefully");
}

TEST(Redact, WhatIsNoPathOrNameStays) {
  for (const char* text :
       {"1.51 GiB/s and/or more", "max_split_size_mb:128", "train.py:88 forward", "annotate the planner",
        "https://pytorch.org/docs", "torch.nn.functional", "events 0-2,187 of 3.14.15"}) {
    EXPECT_EQ(redactor().text(text), text);
  }
}

}  // namespace
}  // namespace oomscope
