package podruntime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/cri/critest"
	"kctl/kubelet/internal/image"
	"kctl/proto/core"
)

func TestImagesArePulled(t *testing.T) {
	b := newBed(t)
	registry := critest.NewRegistry(t)
	registry.User, registry.Password = "me", "secret"
	reference := registry.Push(t, "team/app:1", critest.Image{Entrypoint: []string{"/bin/sleep", "1000"}, User: "1000"})

	c := core.Container{Name: "main", Image: reference, ImagePullPolicy: corev1.PullAlways}
	pod := newPod("pull", c)
	r := b.sync(t, pod, SyncOptions{})
	if w := r.Waiting["main"]; w.Reason != image.ReasonErrPull || !strings.Contains(w.Message, "failed to pull image") || r.Err != nil || r.RetryAfter == 0 {
		t.Fatalf("without a secret: %+v", r)
	}
	if r = b.sync(t, pod, SyncOptions{}); r.Waiting["main"].Reason != image.ReasonPullBackOff {
		t.Fatalf("at once again: %+v", r)
	}

	pod = newPod("pull-secret", c)
	yes := true
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: &yes}
	host, _, _ := strings.Cut(reference, "/")
	secret := &core.Secret{
		Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{%q:{"username":"me","password":"secret"}}}`, host)},
	}
	r = b.sync(t, pod, SyncOptions{PullSecrets: func() []*core.Secret { return []*core.Secret{secret} }})
	if r.Err != nil || len(r.Status.Running()) != 1 {
		t.Fatalf("with the secret: %+v", r)
	}
	asked := b.status(t, pod).Container("main")
	if got := r.Status.Container("main"); got.Image != reference || got.Image != asked.Image || got.ImageID != asked.ImageID {
		t.Errorf("SyncPod tells image %s (%s), the runtime %s (%s)", got.Image, got.ImageID, asked.Image, asked.ImageID)
	}
	if n := registry.Pulls("team/app:1"); n == 0 {
		t.Error("the registry was not asked")
	}
	if !b.events.has(fmt.Sprintf("Successfully pulled image %q in ", reference)) {
		t.Error("no event tells of the pull")
	}

	pod = newPod("missing", core.Container{Name: "main", Image: registry.Reference("team/none:1")})
	r = b.sync(t, pod, SyncOptions{PullSecrets: func() []*core.Secret { return []*core.Secret{secret} }})
	if w := r.Waiting["main"]; w.Reason != image.ReasonErrPull || !strings.Contains(w.Message, "not found") {
		t.Errorf("an image that does not exist: %+v", w)
	}
}

// A pod whose volumes can't be mounted is tried again and again: its image is not asked for
// each time, which registries count.
func TestWithoutItsVolumesAPodPullsNothingAgain(t *testing.T) {
	b := newBed(t)
	registry := critest.NewRegistry(t)
	reference := registry.Push(t, "team/app:1", critest.Image{Entrypoint: []string{"/bin/sleep", "1000"}})
	pod := newPod("lacking", core.Container{Name: "main", Image: reference, ImagePullPolicy: corev1.PullAlways})
	lacks := errors.New("no such secret")
	b.sync(t, pod, SyncOptions{Prepare: func(context.Context) error { return lacks }})
	before := b.events.count("Pulling ")
	for range 3 {
		r := b.sync(t, pod, SyncOptions{Prepare: func(context.Context) error {
			b.status(t, pod) // takes longer than to begin with a pull
			return lacks
		}})
		if !errors.Is(r.Err, lacks) {
			t.Fatalf("%+v", r)
		}
	}
	if got := b.events.count("Pulling "); got != before {
		t.Errorf("the image was pulled %d times more", got-before)
	}
	if r := b.sync(t, pod, SyncOptions{}); r.Err != nil || len(r.Status.Running()) != 1 {
		t.Errorf("with its volumes: %+v", r)
	}
}
