package nodenetwork

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

func member(name, address string, ranges ...string) peer {
	p := peer{name: name, ranges: prefixes(ranges...)}
	for text := range strings.FieldsSeq(address) {
		p.addresses = append(p.addresses, netip.MustParseAddr(text))
	}
	return p
}

func TestAggregate(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"10.0.0.0/24", "[10.0.0.0/24]"},
		{"10.0.1.0/24 10.0.0.0/24", "[10.0.0.0/23]"},
		{"10.0.1.0/24 10.0.2.0/24", "[10.0.1.0/24 10.0.2.0/24]"},
		{"10.0.3.0/24 10.0.1.0/24 10.0.2.0/24 10.0.0.0/24", "[10.0.0.0/22]"},
		{"10.0.0.0/24 10.0.0.0/24 10.0.0.0/16 10.0.7.0/24", "[10.0.0.0/16]"},
		{"0.0.0.0/1 128.0.0.0/1", "[0.0.0.0/0]"},
		{"10.0.0.0/24 fd00::/64 fd00:0:0:1::/64", "[10.0.0.0/24 fd00::/63]"},
	} {
		if got := fmt.Sprint(aggregate(prefixes(strings.Fields(c.in)...))); got != c.want {
			t.Errorf("%s: %s, want %s", c.in, got, c.want)
		}
	}
}

func TestPlan(t *testing.T) {
	own := member("a", "192.0.2.1", "10.0.0.0/24", "fd00::/64")
	for name, c := range map[string]struct {
		mode     Mode
		others   []peer
		want     string
		problems string
	}{
		"alone": {Routes, nil, "", ""},
		"two":   {Routes, []peer{member("b", "192.0.2.2", "10.0.1.0/24")}, "10.0.1.0/24 via 192.0.2.2", ""},
		"no address of the family": {
			Routes, []peer{member("b", "192.0.2.2", "10.0.1.0/24", "fd00:1::/64")}, "10.0.1.0/24 via 192.0.2.2",
			"node b has no InternalIP of the family of its pods' range fd00:1::/64",
		},
		"both families in a VXLAN": {
			VXLAN, []peer{member("b", "192.0.2.2", "10.0.1.0/24", "fd00:1::/64")},
			"10.0.1.0/24 via 10.0.1.0 at 192.0.2.2 0a:58:c0:00:02:02, fd00:1::/64 via fd00:1:: at 192.0.2.2 0a:58:c0:00:02:02", "",
		},
		"a node without anything": {VXLAN, []peer{member("b", "")}, "", ""},
		"a node without address":  {VXLAN, []peer{member("b", "", "10.0.1.0/24")}, "", "node b has no InternalIP of the family of this node's, 192.0.2.1"},
		// Our own range must not be routed away, whatever other nodes claim.
		"our own range": {Routes, []peer{member("b", "192.0.2.2", "10.0.0.0/24")}, "", "nodes a and b both have the range 10.0.0.0/24"},
		"all of it":     {Routes, []peer{member("b", "192.0.2.2", "10.0.0.0/8")}, "", ""},
	} {
		p, problems := makePlan(c.mode, "a", append(c.others, own))
		var routes []string
		for _, r := range p.routes {
			text := fmt.Sprintf("%s via %s", r.to, r.via)
			if c.mode == VXLAN {
				text += fmt.Sprintf(" at %s %s", r.underlay, r.hardware)
			}
			routes = append(routes, text)
		}
		if got := strings.Join(routes, ", "); got != c.want || strings.Join(problems, ", ") != c.problems {
			t.Errorf("%s: %q %q, want %q %q", name, got, problems, c.want, c.problems)
		}
	}
}

func TestHardwareOfIPv6(t *testing.T) {
	a, b := hardware(netip.MustParseAddr("2001:db8::1")), hardware(netip.MustParseAddr("2001:db8::2"))
	if len(a) != 6 || a.String() == b.String() || a[0]&3 != 2 {
		t.Errorf("%s %s", a, b)
	}
}

func TestConfigIsWrittenWholeAndOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "net.d")
	text, err := conflist(prefixes("10.0.0.0/24", "fd00::/64"), 1400)
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Name    string
		Plugins []struct {
			Type string
			MTU  int
			IPAM struct {
				Ranges [][]struct{ Subnet string }
				Routes []struct{ Dst string }
			}
		}
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	if b := parsed.Plugins[0]; len(parsed.Plugins) != 2 || b.MTU != 1400 || b.IPAM.Ranges[1][0].Subnet != "fd00::/64" || b.IPAM.Routes[1].Dst != "::/0" {
		t.Errorf("%s", text)
	}
	for i, want := range []bool{true, false} {
		if written, err := writeConfig(dir, text); err != nil || written != want {
			t.Errorf("%d: written %t %v", i, written, err)
		}
	}
	// A file that a power failure cut short is replaced.
	if err := os.WriteFile(filepath.Join(dir, configFile), text[:20], 0o600); err != nil {
		t.Fatal(err)
	}
	if written, err := writeConfig(dir, text); err != nil || !written {
		t.Errorf("half a file stays: %t %v", written, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
}
