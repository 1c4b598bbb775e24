package filters

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/relaystamps"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
	"kctl/proto/relay"
)

// podWritten is what the registry notes of a request that has written a pod.
func podWritten(c *gin.Context, name, uid string, created bool) {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid), CreationTimestamp: metav1.NewTime(start)}}
	request.NoteWritten(c.Request.Context(), core.Pods, pod, created, start)
}

// everyHop is a header in which a client tells of all hops, of its own and of others'.
func everyHop() string {
	var stamps []relay.Stamp
	for i, hop := range []relay.Hop{relay.KubeletReady, relay.SchedulerBinding, relay.ClientSent, relay.ServerStored, relay.ServerBound,
		relay.KubeletStarted.Of("web")} {
		stamps = append(stamps, relay.Stamp{Hop: hop, At: start.Add(time.Duration(i-10) * time.Millisecond)})
	}
	return relay.Encode(stamps)
}

// Each hop is believed only of a request that can know of it, and nothing of one that failed.
func TestRelayBelievesWhoCanKnow(t *testing.T) {
	const pods, web = "/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop/pods/web"
	node := []string{"system:authenticated", core.GroupNodes}
	for name, tc := range map[string]struct {
		method, path string
		code         int
		created      bool
		groups       []string
		want         []relay.Hop // nil for no trace
	}{
		"create":              {"POST", pods, 201, true, nil, []relay.Hop{relay.ClientSent, relay.ServerReceived, relay.ServerStored}},
		"create by apply":     {"PATCH", web, 201, true, nil, []relay.Hop{relay.ClientSent, relay.ServerReceived, relay.ServerStored}},
		"create by update":    {"PUT", web, 201, true, nil, []relay.Hop{relay.ClientSent, relay.ServerReceived, relay.ServerStored}},
		"create that failed":  {"POST", pods, 409, true, nil, nil},
		"apply that changes":  {"PATCH", web, 200, false, nil, nil},
		"update":              {"PUT", web, 200, false, node, nil},
		"binding":             {"POST", web + "/binding", 201, false, nil, []relay.Hop{relay.SchedulerBinding, relay.ServerBound}},
		"binding that failed": {"POST", web + "/binding", 409, false, nil, nil},
		"status of a node":    {"PATCH", web + "/status", 200, false, node, []relay.Hop{relay.KubeletReady, relay.KubeletStarted.Of("web")}},
		"status by update":    {"PUT", web + "/status", 200, false, node, []relay.Hop{relay.KubeletReady, relay.KubeletStarted.Of("web")}},
		"status of an admin": {"PATCH", web + "/status", 200, false, []string{core.GroupMasters},
			[]relay.Hop{relay.KubeletReady, relay.KubeletStarted.Of("web")}},
		"status of somebody":        {"PATCH", web + "/status", 200, false, []string{"dev"}, nil},
		"status that failed":        {"PATCH", web + "/status", 422, false, node, nil},
		"resize":                    {"PATCH", web + "/resize", 200, false, node, nil},
		"read":                      {"GET", web, 200, false, node, nil},
		"deletion":                  {"DELETE", web, 200, false, node, nil},
		"another resource's create": {"POST", "/api/v1/namespaces/shop/configmaps", 201, true, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ring := relaystamps.NewRing(4)
			handler := chain(func(c *gin.Context) {
				podWritten(c, "web", "1", tc.created)
				c.Status(tc.code)
			}, func(c *gin.Context) {
				c.Request = c.Request.WithContext(request.WithUser(c.Request.Context(), &request.User{Username: "u", Groups: tc.groups}))
			}, Relay(ring, zap.NewNop()))
			serve(handler, tc.method, tc.path, relay.Header, everyHop())
			found, ok := ring.Trace("shop", "web")
			if ok != (tc.want != nil) {
				t.Fatalf("trace %v: %+v", ok, found)
			}
			hops := make([]relay.Hop, 0, len(found.Stamps))
			for _, s := range found.Stamps {
				hops = append(hops, s.Hop)
			}
			if slices.Sort(hops); !slices.Equal(hops, slices.Sorted(slices.Values(tc.want))) {
				t.Errorf("hops %v, want %v", hops, tc.want)
			}
		})
	}
}

// Of restarts only a node's status tells, and what one header says counts whatever the other says.
func TestRelayBelievesOnlyNodesOfRestarts(t *testing.T) {
	const pods, web = "/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop/pods/web"
	restart := relay.Restart{Container: "web", Number: 1, Cause: relay.CauseLiveness, ExitCode: 137, Reason: "Error", Ended: start.Add(-time.Second).UTC()}
	node := []string{"system:authenticated", core.GroupNodes}
	for name, tc := range map[string]struct {
		method, path, stamps, restarts string
		groups                         []string
		want, hops                     int
	}{
		"status of a node":    {"PATCH", web + "/status", "", relay.EncodeRestarts([]relay.Restart{restart}), node, 1, 0},
		"status of an admin":  {"PATCH", web + "/status", "", relay.EncodeRestarts([]relay.Restart{restart}), []string{core.GroupMasters}, 1, 0},
		"status of somebody":  {"PATCH", web + "/status", "", relay.EncodeRestarts([]relay.Restart{restart}), []string{"dev"}, 0, 0},
		"binding":             {"POST", web + "/binding", "", relay.EncodeRestarts([]relay.Restart{restart}), node, 0, 1}, // bound
		"create":              {"POST", pods, "", relay.EncodeRestarts([]relay.Restart{restart}), node, 0, 2},             // received, stored
		"beside no stamps":    {"PATCH", web + "/status", "no stamp", relay.EncodeRestarts([]relay.Restart{restart}), node, 1, 0},
		"no restarts":         {"PATCH", web + "/status", everyHop(), "no restart", node, 0, 2},
		"restarts and stamps": {"PATCH", web + "/status", everyHop(), relay.EncodeRestarts([]relay.Restart{restart}), node, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			ring := relaystamps.NewRing(4)
			handler := chain(func(c *gin.Context) {
				podWritten(c, "web", "1", true)
				c.Status(http.StatusCreated)
			}, func(c *gin.Context) {
				c.Request = c.Request.WithContext(request.WithUser(c.Request.Context(), &request.User{Username: "u", Groups: tc.groups}))
			}, Relay(ring, zap.NewNop()))
			serve(handler, tc.method, tc.path, relay.Header, tc.stamps, relay.RestartHeader, tc.restarts)
			found, _ := ring.Trace("shop", "web")
			if len(found.Restarts) != tc.want || len(found.Stamps) != tc.hops || tc.want > 0 && found.Restarts[0] != restart {
				t.Errorf("%+v", found)
			}
		})
	}
}

// What comes with a write of an earlier pod of the name is not the new one's.
func TestRelayTellsPodsOfANameApart(t *testing.T) {
	ring := relaystamps.NewRing(4)
	uid, created := "1", true
	handler := chain(func(c *gin.Context) {
		podWritten(c, "web", uid, created)
		c.Status(http.StatusCreated)
	}, Relay(ring, zap.NewNop()))
	serve(handler, "POST", "/api/v1/namespaces/shop/pods")
	uid, created = "2", false
	serve(handler, "POST", "/api/v1/namespaces/shop/pods/web/binding", relay.Header, everyHop())
	if found, _ := ring.Trace("shop", "web"); found.UID != "2" || len(found.Stamps) != 2 {
		t.Errorf("%+v", found)
	}
}

func BenchmarkRelay(b *testing.B) {
	for _, way := range []struct {
		name, method, path string
		hops               []relay.Hop
		restarts           []relay.Restart
	}{
		{"create", "POST", "/api/v1/namespaces/shop/pods", nil, nil},
		{"create-kctl", "POST", "/api/v1/namespaces/shop/pods", []relay.Hop{relay.ClientStarted, relay.ClientGenerated, relay.ClientSent}, nil},
		{"status", "PATCH", "/api/v1/namespaces/shop/pods/web/status", []relay.Hop{relay.KubeletRunning, relay.KubeletReady}, nil},
		{"status-plain", "PATCH", "/api/v1/namespaces/shop/pods/web/status", nil, nil},
		{"status-restart", "PATCH", "/api/v1/namespaces/shop/pods/web/status", nil,
			[]relay.Restart{{Container: "web", Number: 1, Cause: relay.CauseExit, Ended: start, Started: start}}},
		{"other", "POST", "/api/v1/namespaces/shop/configmaps", nil, nil},
	} {
		b.Run(way.name, func(b *testing.B) {
			var stamps []relay.Stamp
			for _, h := range way.hops {
				stamps = append(stamps, relay.Stamp{Hop: h, At: start})
			}
			kubelet := &request.User{Username: "system:node:n", Groups: []string{core.GroupNodes}}
			n := 0
			handler := chain(func(c *gin.Context) {
				if way.method == http.MethodPost {
					n++ // always another pod, in place of the oldest known
				}
				podWritten(c, "web"+strconv.Itoa(n%5000), strconv.Itoa(n), way.method == http.MethodPost)
				c.Status(http.StatusCreated)
			}, func(c *gin.Context) {
				c.Request = c.Request.WithContext(request.WithUser(c.Request.Context(), kubelet))
			}, Relay(relaystamps.NewRing(relaystamps.Capacity), zap.NewNop()))
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(way.method, way.path, nil)
				if stamps != nil {
					r.Header.Set(relay.Header, relay.Encode(stamps))
				}
				if way.restarts != nil {
					r.Header.Set(relay.RestartHeader, relay.EncodeRestarts(way.restarts))
				}
				handler.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
