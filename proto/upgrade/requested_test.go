package upgrade

import (
	"net/http"
	"testing"
)

func TestIsRequested(t *testing.T) {
	for _, c := range []struct {
		connection []string
		protocol   string
		want       bool
	}{
		{[]string{"Upgrade"}, "websocket", true},
		{[]string{"keep-alive, upgrade"}, "SPDY/3.1", true},
		{[]string{"keep-alive", "UPGRADE"}, "SPDY/3.1", true},
		{[]string{"Upgrade"}, "", false},
		{[]string{"keep-alive"}, "websocket", false},
		{[]string{"upgrades"}, "websocket", false},
		{nil, "websocket", false},
	} {
		if got := IsRequested(http.Header{"Connection": c.connection, "Upgrade": {c.protocol}}); got != c.want {
			t.Errorf("%q %q: %v", c.connection, c.protocol, got)
		}
	}
}
