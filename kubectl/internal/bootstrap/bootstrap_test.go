package bootstrap

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubectl/internal/doctor"
	"kctl/proto/core"
)

func node(bootID string, ready corev1.ConditionStatus) *core.Node {
	return &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
		NodeInfo: corev1.NodeSystemInfo{BootID: bootID}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
}

func TestWhoMayHaveANodesName(t *testing.T) {
	for name, test := range map[string]struct {
		node *core.Node
		want doctor.Result
	}{
		"another machine, alive":     {node("other", corev1.ConditionTrue), doctor.Fail},
		"another machine, not alive": {node("other", corev1.ConditionUnknown), doctor.Warn},
		"this machine":               {node(bootID(), corev1.ConditionTrue), doctor.OK},
	} {
		if got := nameOf(test.node); got.Result != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhatTheServerSaysOfAToken(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusNotFound: "OK OK", http.StatusForbidden: "OK WARN", http.StatusUnauthorized: "FAIL", http.StatusInternalServerError: "FAIL",
	} {
		s := meet(t, true, time.Hour, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer abcdef.0123456789abcdef" {
				t.Error("no token was sent")
			}
			w.WriteHeader(status)
		})
		var got []string
		for _, check := range (&Cluster{Server: s.URL, CA: s.ca.Cert}).checkAdmission(t.Context(), &Token{ID: "abcdef", Secret: "0123456789abcdef"}, "n") {
			got = append(got, string(check.Result))
			if strings.Contains(check.Detail+check.Advice, "0123456789abcdef") {
				t.Errorf("%d: the token is shown: %+v", status, check)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d: %v, want %s", status, got, want)
		}
	}
}

func TestClocksApart(t *testing.T) {
	now := time.Now()
	for apart, want := range map[time.Duration]doctor.Result{time.Minute: doctor.OK, -24 * time.Hour: doctor.Fail, 24 * time.Hour: doctor.Fail} {
		if got := (&Cluster{Time: now.Add(apart)}).checkClock(now); got.Result != want {
			t.Errorf("%s: %+v", apart, got)
		}
	}
}

func TestRefusalNamesWhatFailed(t *testing.T) {
	checks := []doctor.Check{{Name: "a", Result: doctor.Fail, Detail: "bad", Advice: "mend it"}, {Name: "b", Result: doctor.Warn},
		{Name: "c", Result: doctor.Fail, Detail: "worse"}}
	if err := checkError(checks, []string{"c"}); err == nil || !strings.Contains(err.Error(), "a: bad; mend it") || strings.Contains(err.Error(), "worse") {
		t.Errorf("got %v", err)
	}
	if err := checkError(checks, []string{"all"}); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestWritingIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	o := &Options{Node: Node{Dir: dir, RootDir: "/var/lib/kubelet", Runtime: "unix:///x", Port: 10250}, NodeName: "n"}
	found, token := &Cluster{Server: "https://x:1", CA: []byte("ca")}, NewToken()
	if err := os.Mkdir(o.bootstrapKubeconfig(), 0o700); err != nil { // where a file should be
		t.Fatal(err)
	}
	if err := o.writeFiles(found, token, false); err == nil {
		t.Error("a directory was written to")
	}
	for _, file := range []string{o.caFile(), o.configFile()} {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is left", file)
		}
	}
	if err := os.Remove(o.bootstrapKubeconfig()); err != nil {
		t.Fatal(err)
	}
	if err := o.writeFiles(found, token, false); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(o.bootstrapKubeconfig()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", info.Mode(), err)
	}
	// A file that the user changed is kept.
	if err := os.WriteFile(o.configFile(), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := o.writeFiles(found, token, true); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(o.configFile()); string(data) != "mine" {
		t.Errorf("the configuration is %q", data)
	}
}

func TestTwoClustersAreNotMixed(t *testing.T) {
	a, b := meet(t, true, time.Hour, http.NotFound), meet(t, true, time.Hour, http.NotFound)
	o := &Options{Node: Node{Dir: t.TempDir()}}
	if err := o.sameCluster(a.ca.Cert); err != nil {
		t.Error(err)
	}
	if err := os.MkdirAll(filepath.Dir(o.caFile()), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.caFile(), a.ca.Cert, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := o.sameCluster(a.ca.Cert); err != nil {
		t.Error(err)
	}
	if err := o.sameCluster(b.ca.Cert); err == nil || !strings.Contains(err.Error(), "kctl reset") {
		t.Errorf("got %v", err)
	}
	if err := o.sameCluster(slices.Concat(b.ca.Cert, a.ca.Cert)); err != nil { // b replaces a
		t.Error(err)
	}
}

func TestBadOptions(t *testing.T) {
	good := Options{Node: Node{Port: 10250}, NodeName: "n"}
	for name, change := range map[string]func(o *Options){
		"node name": func(o *Options) { o.NodeName = "UPPER case" },
		"node IP":   func(o *Options) { o.NodeIP = "x" },
		"node IPs":  func(o *Options) { o.NodeIP = "192.0.2.1,192.0.2.2" },
		"DNS":       func(o *Options) { o.ClusterDNS = []string{"dns"} },
		"port":      func(o *Options) { o.Port = 0 },
		"network":   func(o *Options) { o.NodeNetwork = "none" },
		"two ways":  func(o *Options) { o.Discovery.File, o.Hashes = "x", []string{"y"} },
	} {
		o := good
		change(&o)
		if o.Validate() == nil {
			t.Errorf("%s passes", name)
		}
	}
	good.NodeIP, good.NodeNetwork = "192.0.2.1", "vxlan"
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if args := strings.Join(good.kubeletArgs(), " "); !strings.HasSuffix(args, "--node-ip=192.0.2.1 --node-network=vxlan") {
		t.Errorf("the kubelet is started by %s", args)
	}
}

// Ctrl-C is no fault of the server's or of this machine, and leaves nothing behind.
func TestJoinThatIsCutShort(t *testing.T) {
	for _, within := range []string{"the search", "the checks"} {
		ctx, cancel := context.WithCancel(t.Context())
		server := meet(t, true, time.Hour, func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		})
		if within == "the search" {
			cancel()
		}
		dir := filepath.Join(t.TempDir(), "kctl")
		_, err := Join(ctx, Options{
			Discovery: Discovery{Server: server.address(), Hashes: []string{server.hash}}, Token: NewToken().String(), NodeName: "n",
			Node: Node{Dir: dir, RootDir: filepath.Join(dir, "kubelet"), Runtime: "unix://" + dir + "/none", Port: 1}, Now: time.Now(),
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("within %s: %v", within, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("within %s: %s is there: %v", within, dir, err)
		}
		cancel()
	}
}

func TestTheKubeletsPortIsTheOneWrittenDown(t *testing.T) {
	n := Node{Dir: t.TempDir()}
	if got := n.KubeletPort(); got != usualPort {
		t.Errorf("no file: %d", got)
	}
	for content, want := range map[string]int{
		"kind: KubeletConfiguration\nport: 11250\n": 11250, "kind: KubeletConfiguration\n": usualPort, "port: [": usualPort,
	} {
		if err := os.WriteFile(n.configFile(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := n.KubeletPort(); got != want {
			t.Errorf("%q: %d, want %d", content, got, want)
		}
	}
}

func TestWhichKubeletIsNamed(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct{ made, want string }{
		{"", "/usr/lib/kctl/kubelet"},
		{"bin/kubelet", filepath.Join(dir, "bin/kubelet")}, // make build
		{"lib/kctl/kubelet", filepath.Join(dir, "lib/kctl/kubelet")},
	} {
		if step.made != "" {
			file := filepath.Join(dir, step.made)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o700)); err != nil {
				t.Fatal(err)
			}
		}
		if got := (Node{}).Command(filepath.Join(dir, "bin/kctl"), nil)[0]; got != step.want {
			t.Errorf("with %q: %s", step.made, got)
		}
	}
}
