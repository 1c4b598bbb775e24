package eventhandlers

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/watch"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/nominator"
	"kctl/scheduler/internal/waitingpods"
)

// imageLog also records images.
type imageLog struct{ log }

func (l *imageLog) SetImages(node string, images []corev1.ContainerImage) {
	l.note("images of %s: %d", node, len(images))
}

// listsTwice serves a list, a watch that makes the client list again, and a
// second list. done is called after the client has read it.
func listsTwice(t *testing.T, first, second string, done func()) *rest.Client {
	t.Helper()
	lists, watches := []string{first, second}, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			_, _ = fmt.Fprintf(w, `{"kind":%q,"metadata":{"resourceVersion":"%d"},"items":[%s]}`, fixture.ListKind(path.Base(r.URL.Path)), 10-len(lists), lists[0])
			lists = lists[1:]
			return
		}
		if watches++; watches == 1 {
			_, _ = w.Write([]byte(`{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}`))
			return
		}
		done()
	}))
	t.Cleanup(server.Close)
	client, err := rest.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// A list with an object that can't be decoded removes neither a pod from its
// node nor a node, with its images, from the cache.
func TestAListKeepsWhatCannotBeRead(t *testing.T) {
	options := watch.Options{Backoff: backoff.Policy{Initial: time.Millisecond, Max: time.Millisecond}}
	item := func(revision, rest string) string {
		return `{"metadata":{"namespace":"a","name":"x","uid":"1","resourceVersion":"` + revision + `"},` + rest + `}`
	}
	for name, test := range map[string]struct {
		first, second string
		run           func(ctx context.Context, h *Handlers, client *rest.Client)
		want          []string
	}{
		"pod": {
			item("3", `"spec":{"nodeName":"n1"}`), item("4", `"spec":{"nodeName":"n1","overhead":{"cpu":"lots"}}`),
			func(ctx context.Context, h *Handlers, client *rest.Client) {
				_ = watch.NewReflector(client.Resource(core.Pods, ""), func() *core.Pod { return &core.Pod{} }, h.Pods(), options).Run(ctx)
			},
			[]string{"cache pod x on n1", "queue delete x", "event AssignedPodAdd"},
		},
		"node": {
			item("3", `"status":{"images":[{"names":["demo"]}]}`), item("4", `"status":{"allocatable":{"cpu":"lots"}}`),
			func(ctx context.Context, h *Handlers, client *rest.Client) {
				_ = watch.NewReflector(client.Resource(core.Nodes, ""), func() *core.Node { return &core.Node{} }, h.Nodes(), options).Run(ctx)
			},
			[]string{"images of x: 1", "cache node x", "event NodeAdd"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			client := listsTwice(t, test.first, test.second, cancel)
			l := &imageLog{log{names: map[types.UID]string{"1": "x"}, known: map[types.UID]bool{}}}
			test.run(ctx, New(ctx, Slim, l, l, nominator.New(), waitingpods.New(clock.RealClock{})), client)
			if fmt.Sprint(l.lines) != fmt.Sprint(test.want) {
				t.Errorf("said %q, want %q", l.lines, test.want)
			}
		})
	}
}
