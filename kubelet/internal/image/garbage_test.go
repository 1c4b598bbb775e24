package image

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// store is a runtime with images of ten bytes each on a disk of a hundred
// bytes.
type store struct {
	Store
	images     []*runtimeapi.Image
	containers []string // their images
	other      uint64   // bytes of the disk that others use
	volumes    []string // images mounted as volumes
	complaints []string
	removing   func() // is called before an image is removed; may be nil
	listing    func() // is called when the containers have been listed; may be nil
}

func (s *store) ListImages(context.Context) ([]*runtimeapi.Image, error) { return s.images, nil }

func (s *store) ListContainers(context.Context, *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	var out []*runtimeapi.Container
	for _, ref := range s.containers {
		out = append(out, &runtimeapi.Container{ImageRef: ref})
	}
	if s.listing != nil {
		s.listing()
	}
	return out, nil
}

func (s *store) RemoveImage(_ context.Context, image *runtimeapi.ImageSpec) error {
	if s.removing != nil {
		s.removing()
	}
	s.images = slices.DeleteFunc(s.images, func(i *runtimeapi.Image) bool { return i.Id == image.Image })
	return nil
}

func (s *store) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Info: map[string]string{"config": `{"sandboxImage":"pause:1"}`}}, nil
}

func (s *store) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/images"}}}}, nil
}

func (s *store) disk(string) (size, free uint64, err error) {
	return 100, 100 - s.other - 10*uint64(len(s.images)), nil
}

func (s *store) names() []string {
	var out []string
	for _, image := range s.images {
		out = append(out, image.Id)
	}
	return out
}

func collector(thresholds Thresholds, images ...string) (*Collector, *store, *testingclock.FakeClock) {
	s := &store{images: []*runtimeapi.Image{{Id: "pause", RepoTags: []string{"pause:1"}, Size: 10}}}
	for _, id := range images {
		s.images = append(s.images, &runtimeapi.Image{Id: id, Size: 10, Pinned: id == "pinned"})
	}
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return NewCollector(CollectorOptions{
		Store:      s,
		Thresholds: thresholds,
		Disk:       s.disk,
		Clock:      clock,
		Logger:     zap.NewNop(),
		Volumes:    func() []string { return s.volumes },
		Failed:     func(reason, message string) { s.complaints = append(s.complaints, reason+": "+message) },
	}), s, clock
}

func TestAFullDisk(t *testing.T) {
	c, s, clock := collector(Thresholds{High: 80, Low: 60, MinAge: time.Minute}, "a", "b", "pinned", "running")
	s.containers = []string{"running"}
	short := false // of what could be removed
	collect := func(want ...string) {
		t.Helper()
		if err := c.Collect(t.Context()); (err != nil) != short {
			t.Fatal(err)
		}
		if !slices.Equal(s.names(), want) {
			t.Errorf("images %v, want %v", s.names(), want)
		}
	}
	collect("pause", "a", "b", "pinned", "running") // half full
	s.other, short = 35, true                       // from here on, more is needed than can be removed
	collect("pause", "a", "b", "pinned", "running") // full, but all are young
	if !slices.Equal(s.complaints, []string{"FreeDiskSpaceFailed: Insufficient free disk space on the node's image filesystem (85% of 100 B used). " +
		"Failed to free sufficient space by deleting unused images (freed 0 bytes). Investigate disk usage, as it could be used by active images, " +
		"logs, volumes, or other data."}) {
		t.Errorf("complaints %v", s.complaints)
	}
	clock.Step(2 * time.Minute)
	c.Use("a") // a container is about to be created from it
	collect("pause", "a", "pinned", "running")
	clock.Step(2 * time.Minute)
	s.other = 45
	collect("pause", "pinned", "running")
	s.other, s.complaints = 70, nil
	collect("pause", "pinned", "running") // nothing can be removed
	if len(s.complaints) != 1 {
		t.Errorf("complaints %v", s.complaints)
	}
}

// An image that is said to be larger than anything is enough: the others stay.
func TestAnImageOfNonsensicalSize(t *testing.T) {
	c, s, clock := collector(Thresholds{}, "a", "b", "c")
	s.images[1].Size, s.images[2].Size = 1<<62, math.MaxUint64
	unused, err := c.unused(t.Context())
	if err != nil || len(unused) != 3 {
		t.Fatalf("%d images, %v", len(unused), err)
	}
	clock.Step(time.Hour)
	if freed, err := c.free(t.Context(), unused, 1<<62+1); err != nil || freed != math.MaxInt64 || len(s.images) != 2 {
		t.Errorf("%d bytes freed, %v; left: %v", freed, err, s.names())
	}
}

// A disk of size zero is reported. A collection that fails is reported only
// when it fails again.
func TestCollectionsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := collector(Thresholds{High: 80, Low: 60})
		c.Clock, c.Disk = clock.RealClock{}, func(string) (size, free uint64, err error) { return 0, 0, nil }
		ctx, cancel := context.WithTimeout(t.Context(), collectEvery+time.Second)
		defer cancel()
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		const why = ": invalid capacity 0 on image filesystem"
		if !slices.Equal(s.complaints, []string{"InvalidDiskCapacity" + why, "InvalidDiskCapacity" + why, "ImageGCFailed" + why}) {
			t.Errorf("complaints %q", s.complaints)
		}
	})
}

func TestSizesForPeople(t *testing.T) {
	for bytes, want := range map[uint64]string{1023: "1023 B", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 270553174016: "252.0 GiB", 1 << 52: "4096.0 TiB"} {
		if got := inUnits(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}

func TestOldImages(t *testing.T) {
	c, s, clock := collector(Thresholds{High: 100, MaxAge: time.Hour}, "never", "once", "running")
	s.containers = []string{"once", "running"}
	for round := range 3 {
		if err := c.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if round == 1 {
			s.containers = []string{"running"}
		}
		clock.Step(31 * time.Minute)
	}
	if got := s.names(); !slices.Equal(got, []string{"pause", "once", "running"}) {
		t.Errorf("images %v", got)
	}
	if err := c.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.names(); !slices.Equal(got, []string{"pause", "running"}) {
		t.Errorf("images %v", got)
	}
}

func TestANodeShortOfDisk(t *testing.T) {
	c, s, _ := collector(Thresholds{High: 100}, "a", "pinned", "running", "mounted")
	s.containers, s.volumes = []string{"running"}, []string{"models"}
	s.images[len(s.images)-1].RepoTags = []string{"docker.io/library/models:latest"}
	if err := c.FreeAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.names(); !slices.Equal(got, []string{"pause", "pinned", "running", "mounted"}) {
		t.Errorf("images %v", got)
	}
}

// A container may wait for a while between its image and its creation: for others, or for its
// sandbox. What was just fetched without a pod waits for one.
func TestANodeShortOfDiskKeepsWhatContainersWaitFor(t *testing.T) {
	c, s, clock := collector(Thresholds{High: 100, MinAge: time.Minute}, "pulled", "other")
	if _, err := c.unused(t.Context()); err != nil { // they are seen
		t.Fatal(err)
	}
	clock.Step(time.Hour)
	c.Use("pulled")
	s.images = append(s.images, &runtimeapi.Image{Id: "imported", Size: 10})
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{{0, []string{"pause", "pulled", "imported"}}, {time.Minute - 1, []string{"pause", "pulled", "imported"}}, {1, []string{"pause"}}} {
		clock.Step(step.after)
		if err := c.FreeAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.names(); !slices.Equal(got, step.want) {
			t.Errorf("images %v, want %v", got, step.want)
		}
	}
}

// While some images are removed, or the runtime says what they are used for, a pod may get one of the
// next: its container would find it gone.
func TestAnImageThatIsUsedMeanwhile(t *testing.T) {
	for name, thresholds := range map[string]Thresholds{
		"full": {High: 50, Low: 0}, "old": {High: 100, MaxAge: time.Minute}, "short of disk": {High: 100},
	} {
		for _, whileListing := range []bool{false, true} {
			c, s, clock := collector(thresholds, "a", "b")
			if _, err := c.unused(t.Context()); err != nil { // they are seen
				t.Fatal(err)
			}
			clock.Step(time.Hour)
			s.removing = func() { c.Use("b") }
			if whileListing {
				s.listing, s.removing = s.removing, nil
			}
			s.other = 50
			if name == "short of disk" {
				_ = c.FreeAll(t.Context())
			} else {
				_ = c.Collect(t.Context())
			}
			if got := s.names(); slices.Contains(got, "a") || !slices.Contains(got, "b") {
				t.Errorf("%s, while containers are listed %v: images %v", name, whileListing, got)
			}
		}
	}
}
