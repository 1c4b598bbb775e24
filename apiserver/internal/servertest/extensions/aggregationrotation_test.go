package extensions

import (
	"net/http"
	"testing"
	"time"

	"kctl/proto/pki"
)

// TestTheProxysCertificateIsReplaced: an extension server is shown the certificate that is in the
// files now, although a watch holds the connection with the old one open: it would refuse every
// request once that has expired.
func TestTheProxysCertificateIsReplaced(t *testing.T) {
	t.Parallel()
	f := startFederation(t)
	f.register()
	f.untilCondition("True Passed: all checks passed")
	request, err := http.NewRequestWithContext(t.Context(), "GET", f.Address+thingsPath+"?watch=true", nil)
	f.Must(err)
	request.Header.Set("Authorization", "Bearer master")
	watch, err := f.Root().HTTP().Do(request)
	f.Must(err)
	defer watch.Body.Close()
	pair, err := f.proxies.Issue(pki.Subject{CommonName: "renewed", Client: true}, time.Now(), time.Hour)
	f.Must(err)
	f.Must(pair.Save(f.certFile, f.keyFile))
	f.want(http.StatusOK, "GET", thingsPath, nil)
	f.extension.mu.Lock()
	defer f.extension.mu.Unlock()
	if f.extension.proxy != "renewed" {
		t.Errorf("the extension server was shown the certificate of %q", f.extension.proxy)
	}
}
