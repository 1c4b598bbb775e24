package relay_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/proto/relay"
	"kctl/test/harness"
)

func TestRunToRunning(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{})

	out := c.Kctl("run", "hello", "--image="+harness.Demo, "--port=8080", "--labels=app=hello", "--env=WHO=me")
	if !strings.Contains(out, "pod/hello created") {
		t.Errorf("kctl run printed %q", out)
	}
	pod := c.AwaitRunning("hello")

	ip := strings.TrimSpace(c.Kctl("get", "pod", "hello", "-o", "jsonpath={.status.podIP}"))
	if net.ParseIP(ip) == nil || ip != pod.Status.PodIP {
		t.Errorf("the pod's IP is %q, in the status %q", ip, pod.Status.PodIP)
	}
	wide := c.Kctl("get", "pod", "hello", "-o", "wide")
	for _, want := range []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "1/1", "Running", ip, c.Node} {
		if !strings.Contains(wide, want) {
			t.Errorf("get -o wide lacks %q:\n%s", want, wide)
		}
	}
	harness.Eventually(t, 30*time.Second, func() error {
		conn, err := net.Dial("tcp", ip+":8080")
		if err == nil {
			conn.Close()
		}
		return err
	})
	if log := c.Kctl("logs", "hello"); !strings.Contains(log, "pod hello: listening") {
		t.Errorf("the log is %q", log)
	}
	described := c.Kctl("describe", "pod", "hello")
	for _, want := range []string{"Scheduled", "Pulled", "Created", "Started", "Successfully assigned default/hello to " + c.Node} {
		if !strings.Contains(described, want) {
			t.Errorf("describe lacks %q:\n%s", want, described)
		}
	}
	traceIsWhole(t, c)

	begin := time.Now()
	c.Kctl("delete", "pod", "hello")
	c.AwaitGone("hello")
	t.Logf("deleted in %s", time.Since(begin))
	endIsWhole(t, c)
	if entries, err := os.ReadDir(filepath.Join(c.Dir, "kubelet", "pods")); err == nil {
		harness.Eventually(t, 30*time.Second, func() error {
			entries, err = os.ReadDir(filepath.Join(c.Dir, "kubelet", "pods"))
			if err != nil || len(entries) == 0 {
				return err
			}
			return os.ErrExist
		})
	}
}

// traceIsWhole checks that every program stamped its legs, in a possible order.
func traceIsWhole(t *testing.T, c *harness.Cluster) {
	t.Helper()
	text := c.Kctl("trace", "pod/hello")
	if !regexp.MustCompile(`\d ?ms`).MatchString(text) {
		t.Errorf("kctl trace shows no milliseconds:\n%s", text)
	}
	if page := c.Kctl("trace", "pod/hello", "-o", "html"); !strings.HasPrefix(page, "<!DOCTYPE html>") ||
		!strings.Contains(page, string(relay.KubeletStarted.Of("hello"))) {
		t.Errorf("kctl trace -o html is no page of the pod's way:\n%.2000s", page)
	}
	var trace struct {
		Moments []relay.Stamp `json:"moments"`
	}
	if err := json.Unmarshal([]byte(c.Kctl("trace", "pod/hello", "-o", "json")), &trace); err != nil {
		t.Fatal(err)
	}
	at := map[relay.Hop]time.Time{}
	for _, s := range trace.Moments {
		at[s.Hop] = s.At
	}
	// etcd notifies watchers and answers the writer at the same time: the
	// scheduler may have a pod before the API server knows that it is stored.
	for _, order := range [][]relay.Hop{
		{relay.ClientStarted, relay.ClientSent, relay.ServerReceived, relay.ServerAuthenticated, relay.ServerAuthorized, relay.ServerDecoded,
			relay.ServerMutated, relay.ServerValidated, relay.ServerAdmitted, relay.ServerStored},
		{relay.ServerAdmitted, relay.SchedulerPopped, relay.SchedulerAssumed, relay.SchedulerPermitted, relay.SchedulerBinding, relay.ServerBound},
		{relay.SchedulerBinding, relay.KubeletSeen, relay.KubeletWorker, relay.KubeletCgroupCreated, relay.KubeletSandboxCreated,
			relay.KubeletStarted.Of("hello"), relay.KubeletRunning, relay.ServerStatusRunning},
	} {
		for i, hop := range order {
			switch {
			case at[hop].IsZero():
				t.Errorf("%s was not stamped", hop)
			case i > 0 && at[hop].Before(at[order[i-1]]):
				t.Errorf("%s is before %s", hop, order[i-1])
			}
		}
	}
}

// endIsWhole checks that the end of a pod that is gone is known, in a possible order.
func endIsWhole(t *testing.T, c *harness.Cluster) {
	t.Helper()
	var trace struct {
		Gone bool `json:"gone"`
		End  struct {
			Moments []relay.Stamp `json:"moments"`
		} `json:"end"`
	}
	harness.Eventually(t, time.Minute, func() error {
		if err := json.Unmarshal([]byte(c.Kctl("trace", "pod/hello", "-o", "json")), &trace); err != nil {
			return err
		}
		var hops []relay.Hop
		for _, s := range trace.End.Moments {
			hops = append(hops, s.Hop)
		}
		slices.Sort(hops[:min(2, len(hops))]) // the kubelet may hear of the mark before the server's own watch does
		if want := []relay.Hop{relay.ServerDeleting, relay.KubeletStopping, relay.KubeletStopped, relay.ServerRemoved}; !trace.Gone || !slices.Equal(hops, want) {
			return fmt.Errorf("gone %v, %v, want %v", trace.Gone, hops, want)
		}
		return nil
	})
	t.Logf("%s", c.Kctl("trace", "pod/hello"))
}

func TestUpAgainLeavesWhatRunsAlone(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{})
	programs := []string{"registry", "containerd", "apiserver", "scheduler", "kubelet"}
	before := map[string]int{}
	for _, p := range programs {
		before[p] = c.PID(p)
	}
	c.Kctl("run", "stays", "--image="+harness.Demo)
	pod := c.AwaitRunning("stays")
	c.Kill("scheduler")
	c.Up()
	for _, p := range programs {
		if same := c.PID(p) == before[p]; same == (p == "scheduler") {
			t.Errorf("%s: process %d before, %d after", p, before[p], c.PID(p))
		}
	}
	if again := c.AwaitRunning("stays"); again.Status.ContainerStatuses[0].ContainerID != pod.Status.ContainerStatuses[0].ContainerID {
		t.Error("the pod's container is another one")
	}
	if status := c.Kctl("status", "--dir", c.Dir); strings.Contains(status, "not running") {
		t.Errorf("kctl status:\n%s", status)
	}
}

func TestTwoClustersSideBySide(t *testing.T) {
	t.Parallel()
	one, two := harness.Start(t, harness.Options{}), harness.Start(t, harness.Options{})
	for _, c := range []*harness.Cluster{one, two} {
		c.Kctl("run", "same-name", "--image="+harness.Demo)
		c.AwaitRunning("same-name")
	}
	a, b := one.AwaitRunning("same-name"), two.AwaitRunning("same-name")
	if a.UID == b.UID || a.Status.PodIP == b.Status.PodIP {
		t.Errorf("the pods are one: %s %s, %s %s", a.UID, a.Status.PodIP, b.UID, b.Status.PodIP)
	}
	if names := one.Kctl("get", "pods", "-A", "-o", "name"); len(strings.Fields(names)) != 1 {
		t.Errorf("the first cluster has %q", names)
	}
}

func TestWithoutLeavesRoomForSomebodyElses(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{Without: []string{"scheduler"}})
	c.Kctl("run", "waits", "--image="+harness.Demo, "--wait=false")
	pods := c.Kctl("get", "pods")
	if !strings.Contains(pods, "Pending") {
		t.Errorf("without a scheduler:\n%s", pods)
	}
	// A Binding created by hand is what any scheduler creates.
	c.KctlInput(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"waits"},"target":{"apiVersion":"v1","kind":"Node","name":"`+c.Node+`"}}`,
		"create", "-f", "-")
	c.AwaitRunning("waits")
}

func TestDownKeepsDataWhenAsked(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{})
	c.Kctl("create", "configmap", "kept", "--from-literal=a=b")
	c.Kctl("down", "--dir", c.Dir, "--keep-data")
	c.Up()
	if got := c.Kctl("get", "configmap", "kept", "-o", "jsonpath={.data.a}"); got != "b" {
		t.Errorf("after down --keep-data and up the config map says %q", got)
	}
}

func TestRealEtcd(t *testing.T) {
	t.Parallel()
	etcd := harness.StartEtcd(t)
	c := harness.Start(t, harness.Options{Flags: []string{"--etcd-servers", etcd.URL}})
	c.Kctl("run", "hello", "--image="+harness.Demo)
	c.AwaitRunning("hello")
	keys := etcd.Keys(t, "/registry/")
	for _, want := range []string{"/registry/pods/default/hello", "/registry/minions/" + c.Node, "/registry/namespaces/default"} {
		if !slices.Contains(keys, want) {
			t.Errorf("etcd has no key %s, but %v", want, keys)
		}
	}
}
