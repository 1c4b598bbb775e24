package lifecycle

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/objects"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// Pull secrets are fetched in parallel, keep their order, and are fetched once
// for all who need them.
func TestPullSecretsAreAskedForTogether(t *testing.T) {
	var together sync.WaitGroup // a request is answered only when all have arrived
	together.Add(3)
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		asked <- name
		together.Done()
		all := make(chan struct{})
		go func() { together.Wait(); close(all) }()
		select {
		case <-all:
		case <-r.Context().Done():
		}
		if name == "none" {
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
			return
		}
		_ = json.NewEncoder(w).Encode(core.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}))
	defer server.Close()
	client, err := rest.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	l := New(Options{Objects: objects.New(client, clock.RealClock{}, kubeletv1beta1.WatchChangeDetectionStrategy, zap.NewNop())})
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pulls"}}
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "one"}, {Name: ""}, {Name: "none"}, {Name: "two"}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l.Objects.Register(pod)
	secrets := l.pullSecrets(ctx, pod)
	if found := secrets.found; len(found) != 2 || found[0].Name != "one" || found[1].Name != "two" || !slices.Equal(secrets.missing, []string{"none"}) {
		t.Fatalf("got %+v", secrets)
	}
	for len(asked) > 0 {
		<-asked
	}
	if _, err := l.Objects.Secret(ctx, pod.Namespace, "one"); err != nil || len(asked) > 0 {
		t.Errorf("the secret was asked for again, %v", err)
	}
}
