package harness

import "testing"

// Another package's cluster that is just being taken down, whose runtime has ended, is no leak of ours.
func TestWhatIsLeftBehind(t *testing.T) {
	ours, theirs := id("/tmp/kctl-1"), id("/tmp/kctl-2")
	for name, want := range map[string][2]bool{ // where it can be nobody else's, and where it can
		"kctl" + ours:                           {true, true},
		"/sys/fs/cgroup/pids/kctl-" + ours:      {true, true},
		`-A POSTROUTING name: \"kctl-` + ours:   {true, true},
		"kctl" + theirs:                         {false, false},
		"/sys/fs/cgroup/pids/kctl-" + theirs:    {false, false},
		`-A POSTROUTING name: \"kctl-` + theirs: {false, false},
		"veth1a2b3c4d":                          {true, false},
		"/run/netns/cni-1a2b":                   {true, false},
		"/sys/fs/cgroup/pids/kubepods.slice":    {true, false},
		":CNI-HOSTPORT-DNAT - [0:0]":            {true, false},
	} {
		for i, others := range []bool{false, true} {
			if leftBehind(name, []string{ours}, others) != want[i] {
				t.Errorf("%s, others %v: want %v", name, others, want[i])
			}
		}
	}
}
