package core

import (
	"net"
	"slices"
	"testing"
)

func TestParseNodeIPs(t *testing.T) {
	for flag, want := range map[string][]string{
		"192.0.2.1":                  {"192.0.2.1"},
		"fd00::1":                    {"fd00::1"},
		"192.0.2.1,fd00:0:0::1":      {"192.0.2.1", "fd00::1"},
		"fd00::1,192.0.2.1":          {"fd00::1", "192.0.2.1"},
		"::ffff:192.0.2.1":           {"192.0.2.1"},
		"":                           nil,
		"192.0.2.1,":                 nil,
		"192.0.2.1,192.0.2.2":        nil,
		"192.0.2.1,fd00::1,::2":      nil,
		"::":                         nil,
		"0.0.0.0":                    nil,
		"fe80::1%eth0":               nil,
		"ff02::1":                    nil,
		"fd00::1, 192.0.2.1":         nil,
		"host.example.org":           nil,
		"::ffff:192.0.2.1,192.0.2.1": nil,
	} {
		got, err := ParseNodeIPs(flag)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v, want %v", flag, got, err, want)
		}
	}
}

func TestOwnAddressIsTheMachines(t *testing.T) {
	own, err := OwnAddress()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(own.String(), "0")) // works only with an address of this machine
	if err != nil || own.IsUnspecified() {
		t.Fatalf("%s: %v", own, err)
	}
	listener.Close()
}
