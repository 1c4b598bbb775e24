package noderuntime

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/simulated"
)

// The API would refuse a node's status with image names of megabytes, or a negative size.
func TestImagesOfNonsensicalNamesAndSizes(t *testing.T) {
	runtime := simulated.New(simulated.Options{Clock: clock.RealClock{}, Root: t.TempDir(), Lie: func(_ string, answer proto.Message) {
		if images, ok := answer.(*runtimeapi.ListImagesResponse); ok {
			images.Images = append(images.Images, &runtimeapi.Image{Id: "odd", RepoTags: []string{strings.Repeat("n", 1<<20), "odd:1"}, Size: math.MaxUint64})
			images.Images = append(images.Images, &runtimeapi.Image{Id: "small", RepoTags: []string{"small:1"}, Size: 1})
		}
	}})
	client := cri.NewOver(runtime.Connection(), cri.Options{})
	defer client.Close()
	odd, small := corev1.ContainerImage{Names: []string{"odd:1"}, SizeBytes: math.MaxInt64}, corev1.ContainerImage{Names: []string{"small:1"}, SizeBytes: 1}
	for most, want := range map[int][]corev1.ContainerImage{-1: {odd, small}, 0: {}, 1: {odd}, 2: {odd, small}, 3: {odd, small}} {
		images, err := Runtime{CRI: client, MostImages: most}.Images(t.Context())
		if err != nil || !reflect.DeepEqual(images, want) {
			t.Errorf("at most %d: %.1000v, %v", most, images, err)
		}
	}
}
