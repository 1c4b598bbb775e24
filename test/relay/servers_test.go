package relay_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/relay"
	"kctl/test/harness"
)

// TestTraceOfSeveralServers: a pod's stamps come to whichever API server a program talks to. Each
// shows all, and what one has lost with its process is said.
func TestTraceOfSeveralServers(t *testing.T) {
	t.Parallel()
	etcd := harness.StartEtcd(t)
	one, two := harness.StartServer(t, "--etcd-servers="+etcd.URL), harness.StartServer(t, "--etcd-servers="+etcd.URL)
	client := two.Client()
	harness.Eventually(t, time.Minute, func() error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	if _, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	one.MustShell(`echo '{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: i}]}}' | kctl apply --server-side -f -`)
	harness.Eventually(t, time.Minute, func() error {
		return client.CoreV1().Pods("default").Bind(t.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"},
		}, metav1.CreateOptions{})
	})
	for _, asked := range []*harness.Server{one, two} {
		harness.Eventually(t, time.Minute, func() error { return knowsAll(traceBy(t, asked), 2) })
	}

	two.Stop()
	two.Start()
	harness.Eventually(t, time.Minute, func() error {
		seen := traceBy(t, one)
		if len(seen.Lost) != 1 || !strings.Contains(seen.Lost[0], fmt.Sprintf(":%d was started at ", two.Port)) {
			return fmt.Errorf("lost: %q", seen.Lost)
		}
		return nil
	})
}

// shownTrace is what kctl trace shows.
type shownTrace struct {
	Moments []struct {
		Hop         relay.Hop `json:"hop"`
		At          time.Time `json:"at"`
		Approximate bool      `json:"approximate"`
	} `json:"moments"`
	Servers []relay.Server `json:"servers"`
	Lost    []string       `json:"lost"`
}

func traceBy(t *testing.T, server *harness.Server) (seen shownTrace) {
	t.Helper()
	if err := json.Unmarshal([]byte(server.MustShell("kctl trace pod/web -o json")), &seen); err != nil {
		t.Fatal(err)
	}
	return seen
}

// knowsAll checks that the hops of a pod that was created and bound are there, stamped, in order.
func knowsAll(seen shownTrace, servers int) error {
	var hops []relay.Hop
	for _, m := range seen.Moments {
		if !m.Approximate {
			hops = append(hops, m.Hop)
		}
	}
	want := []relay.Hop{
		relay.ClientStarted, relay.ClientSent, relay.ServerReceived, relay.ServerAuthenticated, relay.ServerAuthorized,
		relay.ServerDecoded, relay.ServerMutated, relay.ServerValidated, relay.ServerAdmitted, relay.ServerStored, relay.ServerWatched, relay.ServerBound,
	}
	if !slices.Equal(hops, want) || len(seen.Servers) != servers || len(seen.Lost) > 0 {
		return fmt.Errorf("hops %v, want %v; servers %v; lost %q", hops, want, seen.Servers, seen.Lost)
	}
	return nil
}
