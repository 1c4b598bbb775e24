package imagelocality

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/plugintest"
)

const mb = 1 << 20

// nodes are three nodes: the first has the large image, the first two have the
// common one, and the last a small one.
func nodes() []*framework.NodeInfo {
	c := cache.New(clock.RealClock{}, cache.DefaultExpiry)
	image := func(size int64, names ...string) corev1.ContainerImage {
		return corev1.ContainerImage{Names: names, SizeBytes: size}
	}
	common := image(300*mb, "common:1", "registry/common@sha256:1")
	for _, n := range []struct {
		name   string
		images []corev1.ContainerImage
	}{
		{"n1", []corev1.ContainerImage{image(4000*mb, "large:latest"), common}},
		{"n2", []corev1.ContainerImage{common}},
		{"n3", []corev1.ContainerImage{image(60*mb, "small:1")}},
	} {
		c.SetImages(n.name, n.images)
		c.SetNode(fixture.Node(n.name))
	}
	snapshot := cache.NewSnapshot()
	c.Update(snapshot)
	return snapshot.Nodes()
}

// scoring leaves a plugin nothing but Score.
type scoring = framework.Score

func TestScore(t *testing.T) {
	runs := func(images ...string) *core.Pod {
		return fixture.Pod("p", func(p *core.Pod) {
			p.Spec.Containers = nil
			for _, image := range images {
				p.Spec.Containers = append(p.Spec.Containers, core.Container{Image: image})
			}
		})
	}
	for name, test := range map[string]struct {
		pod  *core.Pod
		want []int64 // nil: skipped
	}{
		"nobody has it": {runs("other:1"), nil},
		// 60 MB on one of three nodes: 20 MB are less than matter.
		"too small": {runs("small:1"), nil},
		// 4000 MB on one of three nodes are more than 1000 MB.
		"no tag is latest": {runs("large"), []int64{100, 0, 0}},
		// 300 MB on two of three nodes: (200-23)/(1000-23).
		"shared":    {runs("common:1"), []int64{18, 18, 0}},
		"by digest": {runs("registry/common@sha256:1"), []int64{18, 18, 0}},
		// 1333+200 of 2000: (1533-23)/(2000-23), (200-23)/(2000-23).
		"two containers": {runs("large:latest", "common:1"), []int64{76, 8, 0}},
		"init containers and image volumes count": {fixture.Pod("p", func(p *core.Pod) {
			p.Spec.Containers[0].Image = "other:1"
			p.Spec.InitContainers = []core.Container{{Image: "large:latest"}}
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "common:1"}}}}
		}), []int64{50, 5, 0}}, // the same of 3000
	} {
		scores, status := plugintest.Scores(t.Context(), New(), test.pod, nodes()...)
		if !status.IsSuccess() || !slices.Equal(scores, test.want) {
			t.Errorf("%s: %v %v, want %v", name, scores, status.Reasons(), test.want)
		}
		// A profile may disable PreScore of all plugins, and have this one's Score.
		alone := struct{ scoring }{New()}
		want := test.want
		if want == nil {
			want = []int64{0, 0, 0}
		}
		scores, status = plugintest.Scores(t.Context(), alone, test.pod, nodes()...)
		if !status.IsSuccess() || !slices.Equal(scores, want) {
			t.Errorf("%s, without PreScore: %v %v, want %v", name, scores, status.Reasons(), want)
		}
	}
}
