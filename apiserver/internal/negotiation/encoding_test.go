package negotiation

import (
	"net/http"
	"testing"
)

func TestAcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "deflate, gzip": true, "gzip;q=0.5": true, "br, gzip ; q=1": true,
		"gzip;q=0": false, "gzip; q=0.000": false, "deflate, gzip;q=0": false, "br": false, "*": false, "identity": false, "xgzip": false,
	} {
		r := &http.Request{Header: http.Header{"Accept-Encoding": {header}}}
		if got := AcceptsGzip(r); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}
