package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	testclock "k8s.io/utils/clock/testing"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// api is an API server with the objects of the test. It counts requests.
type api struct {
	clock *testclock.FakeClock

	mu       sync.Mutex
	objects  map[string]any // by path
	requests map[string]int // by path
	tokens   []authenticationv1.TokenRequest
	refuse   bool
	forbid   int           // how many requests are refused
	hold     chan struct{} // requests wait for it, if set
	arrived  chan string
}

func newAPI(t *testing.T) (*api, *Objects) {
	a := &api{
		clock:   testclock.NewFakeClock(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)),
		objects: map[string]any{}, requests: map[string]int{}, arrived: make(chan string, 100),
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	client, err := rest.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return a, New(client, a.clock, kubeletv1beta1.TTLCacheChangeDetectionStrategy, zap.NewNop())
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests[r.URL.Path]++
	object, refuse, hold, forbid := a.objects[r.URL.Path], a.refuse, a.hold, a.forbid > 0
	a.forbid--
	a.mu.Unlock()
	a.arrived <- r.URL.Path
	if hold != nil {
		<-hold
	}
	switch {
	case refuse:
		w.WriteHeader(http.StatusInternalServerError)
	case forbid:
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "x", errors.New("no relationship found")).Status())
	case r.Method == http.MethodPost:
		a.token(w, r)
	case object == nil:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "x").Status())
	default:
		_ = json.NewEncoder(w).Encode(object)
	}
}

// A token lasts as long as it was issued for, even if the node's clock differs
// from the server's.
func TestTokensLastWhereClocksDisagree(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	hour := int64(3600)
	for _, c := range []struct {
		name    string
		seconds *int64
		expires time.Duration // from now, by our clock
		want    time.Duration
	}{
		{"one clock", &hour, time.Hour, time.Hour},
		{"a shorter life than was asked for", &hour, 10 * time.Minute, 10 * time.Minute},
		{"ours is a day behind", &hour, 25 * time.Hour, time.Hour},
		{"ours is a day ahead", &hour, -23 * time.Hour, time.Hour},
		{"a server that does not say", nil, time.Hour, time.Hour},
	} {
		answer := &authenticationv1.TokenRequest{
			Spec:   authenticationv1.TokenRequestSpec{ExpirationSeconds: c.seconds},
			Status: authenticationv1.TokenRequestStatus{ExpirationTimestamp: metav1.NewTime(now.Add(c.expires))},
		}
		if got := lifetimeOf(answer, now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func (a *api) token(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var request authenticationv1.TokenRequest
	_ = json.NewDecoder(r.Body).Decode(&request)
	a.tokens = append(a.tokens, request)
	request.Status = authenticationv1.TokenRequestStatus{
		Token:               fmt.Sprintf("token-%d", len(a.tokens)),
		ExpirationTimestamp: metav1.NewTime(a.clock.Now().Add(time.Duration(*request.Spec.ExpirationSeconds) * time.Second)),
	}
	_ = json.NewEncoder(w).Encode(request)
}

const mapPath = "/api/v1/namespaces/ns/configmaps/m"

func (a *api) put(value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[mapPath] = &core.ConfigMap{Data: map[string]string{"k": value}}
}

func (a *api) count(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests[path]
}

func pod(uid string) *core.Pod {
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: types.UID(uid)},
		Spec: core.PodSpec{
			ServiceAccountName: "robot",
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}},
			}}},
		},
	}
}

func value(t *testing.T, o *Objects) string {
	t.Helper()
	m, err := o.ConfigMap(t.Context(), "ns", "m")
	if err != nil {
		t.Fatal(err)
	}
	return m.Data["k"]
}

func TestGetKeepsWhatPodsReferTo(t *testing.T) {
	a, o := newAPI(t)
	a.put("1")
	expect := func(step, want string, requests int) {
		t.Helper()
		if got := value(t, o); got != want || a.count(mapPath) != requests {
			t.Errorf("%s: %q after %d requests, want %q after %d", step, got, a.count(mapPath), want, requests)
		}
	}
	expect("without a pod nothing is kept", "1", 1)
	expect("without a pod nothing is kept", "1", 2)
	o.Register(pod("a"))
	expect("first", "1", 3)
	a.put("2")
	expect("kept", "1", 3)
	o.Register(pod("a"))
	expect("registering again changes nothing", "1", 3)
	o.Register(pod("b"))
	expect("a new pod sees what is there when it comes", "2", 4)
	a.put("3")
	a.clock.SetTime(a.clock.Now().Add(ttl))
	expect("old", "3", 5)
	a.put("4")
	o.Renew("a")
	expect("a pod wants it new", "4", 6)
	a.put("5")
	expect("once", "4", 6)
	o.Unregister("a")
	o.Renew("a")
	expect("still referred to", "4", 6)
	o.Unregister("b")
	o.Unregister("b")
	expect("no longer", "5", 7)
	if n := len(o.configMaps.entries); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

func TestImmutableIsAskedForOnce(t *testing.T) {
	a, o := newAPI(t)
	yes := true
	a.objects[mapPath] = &core.ConfigMap{Data: map[string]string{"k": "1"}, Immutable: &yes}
	for _, uid := range []string{"a", "b"} {
		o.Register(pod(uid))
		value(t, o)
		a.clock.SetTime(a.clock.Now().Add(time.Hour))
	}
	if n := a.count(mapPath); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestNotFoundIsTheAPIsAndNotKept(t *testing.T) {
	a, o := newAPI(t)
	o.Register(pod("a"))
	if _, err := o.ConfigMap(t.Context(), "ns", "m"); !apierrors.IsNotFound(err) || err.Error() != `configmap "m" not found` {
		t.Errorf("error %v, want not found", err)
	}
	a.put("1")
	if got := value(t, o); got != "1" {
		t.Errorf("got %q, want 1", got)
	}
}

func TestCallersShareOneRequest(t *testing.T) {
	a, o := newAPI(t)
	a.put("1")
	a.hold = make(chan struct{})
	o.Register(pod("a"))
	// The first caller gives up while the others wait for its request.
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := o.ConfigMap(ctx, "ns", "m"); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller who gave up got %v", err)
		}
	})
	<-a.arrived
	for range 5 {
		group.Go(func() { value(t, o) })
	}
	cancel()
	<-a.arrived // one of the others repeats the request
	close(a.hold)
	group.Wait()
	if n := a.count(mapPath); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// An answer to a request made before a pod came may be older than the pod, and
// must not be given to it.
func TestAnswerUnderWayIsTooOldForANewPod(t *testing.T) {
	a, o := newAPI(t)
	a.put("old")
	hold := make(chan struct{})
	a.hold = hold
	o.Register(pod("a"))
	var group sync.WaitGroup
	group.Go(func() { value(t, o) })
	<-a.arrived
	a.mu.Lock()
	a.hold = nil
	a.mu.Unlock()
	a.put("new")
	o.Register(pod("b"))
	if got := value(t, o); got != "new" {
		t.Errorf("the new pod got %q", got)
	}
	close(hold)
	group.Wait()
	if got := value(t, o); got != "new" || a.count(mapPath) != 2 {
		t.Errorf("the older answer took the newer one's place: %q after %d requests", got, a.count(mapPath))
	}
}

func TestTokenIsBoundAndReplacedInTime(t *testing.T) {
	a, o := newAPI(t)
	p := pod("a")
	token := func() string {
		t.Helper()
		s, err := o.Token(t.Context(), p, "vault", 600)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if first := token(); first != token() {
		t.Error("a second token was asked for")
	}
	spec := a.tokens[0].Spec
	if ref := spec.BoundObjectRef; ref.Kind != "Pod" || ref.Name != "p" || ref.UID != "a" || spec.Audiences[0] != "vault" || *spec.ExpirationSeconds != 600 {
		t.Errorf("asked for %+v", spec)
	}
	if a.count("/api/v1/namespaces/ns/serviceaccounts/robot/token") != 1 {
		t.Errorf("requests: %v", a.requests)
	}
	start := a.clock.Now()
	a.clock.SetTime(start.Add(479 * time.Second))
	if got := token(); got != "token-1" {
		t.Errorf("before 80 %%: %s", got)
	}
	a.clock.SetTime(start.Add(480 * time.Second))
	a.refuse = true
	if got := token(); got != "token-1" {
		t.Errorf("with the API away, while the token is good: %s", got)
	}
	if n := a.count("/api/v1/namespaces/ns/serviceaccounts/robot/token"); n != 2 {
		t.Errorf("at 80 %% of the token's life there were %d requests, want a second", n)
	}
	a.clock.SetTime(start.Add(600 * time.Second))
	if _, err := o.Token(t.Context(), p, "vault", 600); err == nil {
		t.Error("an expired token was given")
	}
	a.refuse = false
	if got := token(); got != "token-2" {
		t.Errorf("with the API back: %s", got)
	}
	o.Unregister("a")
	if len(o.tokens.entries) != 0 {
		t.Error("the token of a pod that is gone is kept")
	}
}

func TestPrefetchGetsEverythingContainersNeed(t *testing.T) {
	a, o := newAPI(t)
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	p := pod("a")
	p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{local("pull")}
	p.Spec.Volumes = append(p.Spec.Volumes,
		corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "vs"}}},
		corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: local("ps")}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("pm")}},
		}}}})
	p.Spec.InitContainers = []core.Container{{EnvFrom: []corev1.EnvFromSource{
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("fs")}},
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("fm")}},
	}}}
	p.Spec.Containers = []core.Container{{Env: []corev1.EnvVar{
		{Name: "PLAIN", Value: "x"},
		{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local("es")}}},
		{ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local("em")}}},
	}}}
	o.Register(p)
	o.Prefetch(t.Context(), p)
	for _, name := range []string{"secrets/vs", "secrets/ps", "secrets/fs", "secrets/es", "configmaps/m", "configmaps/pm", "configmaps/fm", "configmaps/em"} {
		if n := a.count("/api/v1/namespaces/ns/" + name); n != 1 {
			t.Errorf("%s was asked for %d times", name, n)
		}
	}
	if n := a.count("/api/v1/namespaces/ns/secrets/pull"); n != 0 {
		t.Errorf("the pull secret was asked for %d times: it may be long in coming", n)
	}
}

func TestWithoutAServerThereIsNothing(t *testing.T) {
	o := New(nil, testclock.NewFakeClock(time.Now()), kubeletv1beta1.WatchChangeDetectionStrategy, zap.NewNop())
	o.Register(pod("a"))
	_, err1 := o.ConfigMap(t.Context(), "ns", "m")
	_, err2 := o.Secret(t.Context(), "ns", "s")
	_, err3 := o.Token(t.Context(), pod("a"), "", 600)
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, errNoServer) {
			t.Errorf("error %v", err)
		}
	}
}

func TestTrustBundles(t *testing.T) {
	a, o := newAPI(t)
	bundle := func(label, content string) certificatesv1.ClusterTrustBundle {
		return certificatesv1.ClusterTrustBundle{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"live": label}},
			Spec:       certificatesv1.ClusterTrustBundleSpec{TrustBundle: content},
		}
	}
	one := bundle("yes", "one")
	const path = "/apis/certificates.k8s.io/v1/clustertrustbundles"
	a.objects[path+"/mine"] = &one
	a.objects[path] = &certificatesv1.ClusterTrustBundleList{Items: []certificatesv1.ClusterTrustBundle{one, bundle("no", "two")}}
	if got, err := o.TrustBundle(t.Context(), "mine"); err != nil || got != "one" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := o.TrustBundle(t.Context(), "other"); !apierrors.IsNotFound(err) {
		t.Errorf("a bundle that is not there: %v", err)
	}
	got, err := o.TrustBundlesOf(t.Context(), "a.b/c", labels.SelectorFromSet(labels.Set{"live": "yes"}))
	if err != nil || len(got) != 1 || got[0] != "one" {
		t.Errorf("%q, %v", got, err)
	}
	none := New(nil, a.clock, kubeletv1beta1.WatchChangeDetectionStrategy, zap.NewNop())
	if _, err := none.TrustBundlesOf(t.Context(), "a.b/c", labels.Everything()); !errors.Is(err, errNoServer) {
		t.Errorf("without a server: %v", err)
	}
}
