package podcidr

import (
	"errors"
	"net/netip"
	"testing"
)

func must(t *testing.T, cluster string, bits int) *Range {
	t.Helper()
	r, err := New(netip.MustParsePrefix(cluster), bits)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFreeGivesEachOnceAndThenSaysThatNoneIsLeft(t *testing.T) {
	for _, c := range []struct {
		cluster, last string
		bits, count   int
	}{
		{"10.244.0.0/16", "10.244.255.0/24", 24, 256},
		{"10.244.0.0/30", "10.244.0.3/32", 32, 4},
		{"fd00:10::/56", "fd00:10:0:ff::/64", 64, 256},
		{"10.1.2.0/24", "10.1.2.0/24", 24, 1},
	} {
		r := must(t, c.cluster, c.bits)
		seen := map[netip.Prefix]bool{}
		var last netip.Prefix
		for range c.count {
			// With nothing taken, one after the other.
			p, err := r.Free(nil)
			if err != nil || seen[p] || !r.cluster.Contains(p.Addr()) || p != p.Masked() {
				t.Fatalf("%s: %s %v", c.cluster, p, err)
			}
			seen[p], last = true, p
		}
		if last.String() != c.last {
			t.Errorf("%s: the last is %s, want %s", c.cluster, last, c.last)
		}
		taken := make([]netip.Prefix, 0, len(seen))
		for p := range seen {
			taken = append(taken, p)
		}
		if p, err := r.Free(taken); !errors.Is(err, ErrFull) {
			t.Errorf("%s: %s %v", c.cluster, p, err)
		}
		if p, err := r.Free(taken[1:]); err != nil || p != taken[0] {
			t.Errorf("%s: the one that is free is %s, got %s %v", c.cluster, taken[0], p, err)
		}
	}
}

func TestTakenRangesOfOtherSizes(t *testing.T) {
	for taken, want := range map[string]string{
		"10.0.0.0/26":       "10.0.1.0/24", // a part of the first
		"10.0.0.0/23":       "10.0.2.0/24", // covers two of them
		"10.0.0.0/8":        "",            // covers all of them
		"10.0.3.0/24":       "10.0.0.0/24",
		"192.168.0.0/16":    "10.0.0.0/24", // of another cluster
		"fd00::/64":         "10.0.0.0/24",
		"nonsense":          "10.0.0.0/24",
		"10.0.0.77/24":      "10.0.1.0/24", // not in canonical form
		"10.0.0.0/22":       "",
		"::ffff:10.0.0.0/8": "10.0.0.0/24",
	} {
		p, err := must(t, "10.0.0.0/22", 24).Free(Parse([]string{taken}))
		if got := p.String(); err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("%s is taken: %s %v, want %q", taken, got, err, want)
		}
	}
}

func TestWhatGivenBackRests(t *testing.T) {
	r := must(t, "10.0.0.0/22", 24)
	first, _ := r.Free(nil)
	second, _ := r.Free([]netip.Prefix{first})
	third, err := r.Free([]netip.Prefix{second}) // the first was given back
	if err != nil || third.String() != "10.0.2.0/24" {
		t.Errorf("%s %v", third, err)
	}
}

func TestRangesThatCantBeCut(t *testing.T) {
	for cluster, bits := range map[string]int{"10.0.0.0/24": 23, "10.0.0.0/8": 25, "10.0.0.1/16": 24, "10.0.0.0/31": 33, "fd00::/32": 64} {
		if _, err := New(netip.MustParsePrefix(cluster), bits); err == nil {
			t.Errorf("%s is cut into /%d", cluster, bits)
		}
	}
}

func TestTheLargest(t *testing.T) {
	for cluster, bits := range map[string]int{"10.0.0.0/8": 24, "0.0.0.0/0": 16, "fd00::/48": 64, "::/0": 16} {
		r := must(t, cluster, bits)
		last := r.rangeAt(1<<maxBits - 1)
		if r.index(last.Addr()) != 1<<maxBits-1 || !r.cluster.Contains(last.Addr()) {
			t.Errorf("%s: the last is %s", cluster, last)
		}
	}
}
