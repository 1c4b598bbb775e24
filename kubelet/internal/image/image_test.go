package image

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/kubelet/internal/credential"
	"kctl/proto/core"
)

// registry is a runtime whose pulls succeed or fail by the user.
type registry struct {
	mu       sync.Mutex
	images   map[string]*runtimeapi.Image
	pull     func(ctx context.Context, name string, auth *runtimeapi.AuthConfig) error
	attempts []string // the image and user of each pull
	inspect  error
}

func (r *registry) ImageStatus(_ context.Context, spec *runtimeapi.ImageSpec) (*runtimeapi.Image, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.images[spec.GetImage()], r.inspect
}

func (r *registry) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	r.mu.Lock()
	r.attempts = append(r.attempts, strings.TrimSpace(spec.GetImage()+" "+auth.GetUsername()))
	r.mu.Unlock()
	if r.pull != nil {
		if err := r.pull(ctx, spec.GetImage(), auth); err != nil {
			return "", err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images[spec.GetImage()] = &runtimeapi.Image{Id: "sha256:1", RepoTags: []string{spec.GetImage()}, Size: 42, Uid: &runtimeapi.Int64Value{Value: 7}}
	return "sha256:1", nil
}

type eventLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *eventLog) ContainerEventf(_ *core.Pod, _, eventType, reason, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, eventType+" "+reason+": "+fmt.Sprintf(format, args...))
}

func (l *eventLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

func setUp(parallel int) (*Manager, *registry, *eventLog, *clocktesting.FakeClock) {
	r := &registry{images: map[string]*runtimeapi.Image{}}
	events, clock := &eventLog{}, clocktesting.NewFakeClock(time.Unix(1e9, 0))
	return New(Options{Runtime: r, Events: events, Clock: clock, Logger: zap.NewNop(), Parallel: parallel}), r, events, clock
}

func request(image string, policy corev1.PullPolicy, secrets ...*core.Secret) Request {
	return Request{
		Pod:   &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}},
		Image: image, Policy: policy, Secrets: func() []*core.Secret { return secrets },
	}
}

func reasonOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return fmt.Sprint(err)
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		name    string
		policy  corev1.PullPolicy
		present bool
		pulls   int
		reason  string
		events  []string
	}{
		{"if not present, present", corev1.PullIfNotPresent, true, 0, "", nil},
		{"if not present, absent", corev1.PullIfNotPresent, false, 1, "", []string{`Normal Pulling: Pulling image "img"`,
			`Normal Pulled: Successfully pulled image "img" in 0s (0s including waiting). Image size: 42 bytes.`}},
		{"always, present", corev1.PullAlways, true, 1, "", []string{`Normal Pulling: Pulling image "img"`,
			`Normal Pulled: Successfully pulled image "img" in 0s (0s including waiting). Image size: 42 bytes.`}},
		{"never, present", corev1.PullNever, true, 0, "", nil},
		{"never, absent", corev1.PullNever, false, 0, "ErrImageNeverPull",
			[]string{`Warning ErrImageNeverPull: Container image "img" is not present with pull policy of Never`}},
		{"of another world", "Sometimes", false, 0, "ImageInspectError", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, r, events, _ := setUp(0)
			if c.present {
				r.images["img:latest"] = &runtimeapi.Image{Id: "sha256:0"}
			}
			present, err := m.Ensure(t.Context(), request("img", c.policy))
			if c.reason == "" && (err != nil || present.Ref == "") || c.reason != "" && reasonOf(err) != c.reason {
				t.Errorf("Ensure = %+v, %v", present, err)
			}
			if len(r.attempts) != c.pulls {
				t.Errorf("pulled %v", r.attempts)
			}
			if got := events.take(); !slices.Equal(got, c.events) {
				t.Errorf("events %q\nwant %q", got, c.events)
			}
		})
	}
}

func TestInvalidName(t *testing.T) {
	m, r, events, _ := setUp(0)
	if _, err := m.Ensure(t.Context(), request("UPPER:::", corev1.PullAlways)); reasonOf(err) != "InvalidImageName" {
		t.Errorf("err = %v", err)
	}
	if len(r.attempts) > 0 || len(events.take()) != 1 {
		t.Errorf("pulled %v", r.attempts)
	}
}

func TestDigestsKeepTheirName(t *testing.T) {
	digest := "img@sha256:" + strings.Repeat("0", 64)
	for in, want := range map[string]string{"img": "img:latest", "r.test:5000/a/b": "r.test:5000/a/b:latest", "img:1": "img:1", digest: digest} {
		if got, err := withTag(in); got != want || err != nil {
			t.Errorf("withTag(%q) = %q, %v", in, got, err)
		}
	}
}

func TestPullBackOff(t *testing.T) {
	m, r, events, clock := setUp(0)
	r.pull = func(context.Context, string, *runtimeapi.AuthConfig) error { return errors.New("no such image") }
	var e *Error
	ensure := func() error {
		_, err := m.Ensure(t.Context(), request("img", corev1.PullIfNotPresent))
		return err
	}
	for _, delay := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		delay *= time.Second
		if err := ensure(); reasonOf(err) != "ErrImagePull" || !strings.Contains(err.Error(), "no such image") {
			t.Fatalf("err = %v", err)
		}
		if got := events.take(); len(got) != 2 || got[1] != `Warning Failed: Failed to pull image "img": no such image` {
			t.Fatalf("events %q", got)
		}
		clock.Step(delay - time.Second)
		if err := ensure(); !errors.As(err, &e) || e.Reason != "ImagePullBackOff" || e.RetryAfter != time.Second ||
			e.Message != `Back-off pulling image "img": ErrImagePull: no such image` {
			t.Fatalf("before %v: %+v", delay, e)
		}
		if got := events.take(); len(got) != 1 || got[0] != `Normal BackOff: Back-off pulling image "img"` {
			t.Fatalf("events %q", got)
		}
		clock.Step(time.Second)
	}
	r.pull = nil
	if err := ensure(); err != nil || len(m.failureReasons) > 0 {
		t.Fatal(err, m.failureReasons)
	}
}

func TestEndedPodCountsNoFailure(t *testing.T) {
	m, r, events, _ := setUp(0)
	ctx, cancel := context.WithCancel(t.Context())
	r.pull = func(ctx context.Context, _ string, _ *runtimeapi.AuthConfig) error { cancel(); return ctx.Err() }
	if _, err := m.Ensure(ctx, request("img", corev1.PullAlways)); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if got := events.take(); len(got) != 1 {
		t.Errorf("events %q, want Pulling only", got)
	}
	r.pull = nil
	if _, err := m.Ensure(t.Context(), request("img", corev1.PullAlways)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestRuntimeErrorIsTheCallersToRetry(t *testing.T) {
	m, r, _, _ := setUp(0)
	r.inspect = errors.New("runtime is away")
	_, err := m.Ensure(t.Context(), request("img", corev1.PullIfNotPresent))
	if reasonOf(err) != "ImageInspectError" || !errors.Is(err, r.inspect) {
		t.Errorf("err = %v", err)
	}
}

func TestPullsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r, _, _ := setUp(2)
		proceed := make(chan struct{})
		var under, most int
		r.pull = func(context.Context, string, *runtimeapi.AuthConfig) error {
			r.mu.Lock()
			under++
			most = max(most, under)
			r.mu.Unlock()
			<-proceed
			r.mu.Lock()
			under--
			r.mu.Unlock()
			return nil
		}
		var group sync.WaitGroup
		for i := range 5 {
			group.Go(func() {
				if _, err := m.Ensure(t.Context(), request(fmt.Sprintf("img%d", i), corev1.PullAlways)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		r.mu.Lock()
		now := under
		r.mu.Unlock()
		if now != 2 {
			t.Errorf("%d pulls at once, want 2", now)
		}
		close(proceed)
		group.Wait()
		if most != 2 || len(r.attempts) != 5 {
			t.Errorf("%d pulls at most, %d in all", most, len(r.attempts))
		}
	})
}

func secret(name, content string) *core.Secret {
	return &core.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(content)},
	}
}

// node knows one user, and fails if asked for more.
type node struct{}

func (node) Lookup(context.Context, *core.Pod, string) ([]credential.Credential, error) {
	return []credential.Credential{{Auth: &runtimeapi.AuthConfig{Username: "node"}}}, errors.New("credential provider x: no way")
}

// TestTheNodesCredentialsComeLast: the node's credentials are tried after the
// pod's. Those that could not be had are named if they may be the reason for a
// failure.
func TestTheNodesCredentialsComeLast(t *testing.T) {
	m, r, events, _ := setUp(0)
	m.Node = node{}
	own := secret("own", `{"auths":{"r.test":{"username":"own"}}}`)
	r.pull = func(_ context.Context, _ string, auth *runtimeapi.AuthConfig) error {
		if auth.GetUsername() != "node" {
			return errors.New("denied")
		}
		return nil
	}
	if _, err := m.Ensure(t.Context(), request("r.test/x:1", corev1.PullAlways, own)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"r.test/x:1 own", "r.test/x:1 node"}; !slices.Equal(r.attempts, want) {
		t.Errorf("attempts %q, want %q", r.attempts, want)
	}
	events.take()
	r.pull = func(context.Context, string, *runtimeapi.AuthConfig) error { return errors.New("denied") }
	_, err := m.Ensure(t.Context(), request("r.test/x:1", corev1.PullAlways, own))
	if said := strings.Join(events.take(), "\n"); err == nil || !strings.Contains(said, "denied") || !strings.Contains(said, "credential provider x: no way") {
		t.Errorf("err %v, events %s", err, said)
	}
}

func TestEachCredentialIsTried(t *testing.T) {
	m, r, events, _ := setUp(0)
	r.pull = func(_ context.Context, _ string, auth *runtimeapi.AuthConfig) error {
		if auth.GetUsername() != "r" {
			return errors.New("denied")
		}
		return nil
	}
	broken := secret("broken", "{")
	good := secret("good", `{"auths":{"r.test":{"username":"r"},"r.test/team":{"username":"team"}}}`)
	if _, err := m.Ensure(t.Context(), request("r.test/team/app:1", corev1.PullAlways, broken, good)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"r.test/team/app:1 team", "r.test/team/app:1 r"}; !slices.Equal(r.attempts, want) {
		t.Errorf("attempts %q, want %q", r.attempts, want)
	}
	if got := events.take(); len(got) != 2 {
		t.Errorf("events %q", got)
	}
}
