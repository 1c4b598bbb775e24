package filters

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"kctl/apiserver/internal/authn"
)

// TestDrainFinishesWhatNeedsTheServerItself: a request in flight whose webhook is called through the
// server gets its answer, though new requests are turned away.
func TestDrainFinishesWhatNeedsTheServerItself(t *testing.T) {
	drain := NewDrain()
	drain.Wait(t.Context())
	handler := chain(ok, drain.Filter())
	if w := serve(handler, http.MethodPost, "/apis/x/v1/reviews"); w.Code != http.StatusTooManyRequests {
		t.Errorf("somebody else's request: %d %s", w.Code, w.Body)
	}
	own, w := httptest.NewRequest(http.MethodPost, "/apis/x/v1/reviews", nil), httptest.NewRecorder()
	handler.ServeHTTP(w, own.WithContext(authn.FromItself(t.Context(), nil)))
	if w.Code != http.StatusOK {
		t.Errorf("the server's own request: %d %s", w.Code, w.Body)
	}
}
