package filters

import (
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"kctl/apiserver/internal/request"
)

// TestWatchesThatCostAsLists: those that begin with what is there, as kube-apiserver 1.37
// counts them.
func TestWatchesThatCostAsLists(t *testing.T) {
	o := &FairnessOptions{Measure: func(*request.Info, int, int) (objects, bytes int) { return 250, 0 }}
	for query, want := range map[string]int{
		"": 3, "resourceVersion=0": 3, "resourceVersion=7": 1,
		"sendInitialEvents=true": 3, "sendInitialEvents=true&resourceVersion=7": 3, "sendInitialEvents=false": 1,
	} {
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request = httptest.NewRequest("GET", "/api/v1/pods?watch=1&"+query, nil)
		if got := o.seats(c, &request.Info{Verb: "watch"}); got != want {
			t.Errorf("%q costs %d seats, want %d", query, got, want)
		}
		if got := o.seats(c, &request.Info{Verb: "watch", Name: "a"}); got != 1 {
			t.Errorf("%q costs %d seats for one object", query, got)
		}
	}
}
