package handlers

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/registry"
)

// TestACompressedWatchEndsWhole: a watch whose time is up between two events that were
// ready together has sent the first of them, and not half a gzip member, which would be
// an error for its client.
func TestACompressedWatchEndsWhole(t *testing.T) {
	w := httptest.NewRecorder()
	context, _ := gin.CreateTestContext(w)
	s := &stream{call: &call{gin: context}, form: form{media: runtime.ContentTypeJSON}, initialEventsSent: true}
	err := s.followCompressed(func(yield func(registry.WatchEvent, bool) bool) {
		yield(registry.WatchEvent{Frame: []byte("{}\n")}, true)
	})
	unpacked, unpackErr := gzip.NewReader(w.Body)
	if err := errors.Join(err, unpackErr); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(unpacked); err != nil || string(got) != "{}\n" {
		t.Errorf("%q, %v", got, err)
	}
}
