package image

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/distribution/reference"
	"go.uber.org/zap"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/filesystem"
)

// collectEvery is upstream's interval between checks of the images' disk.
const collectEvery = 5 * time.Minute

// Store is what a Collector asks of a CRI runtime.
type Store interface {
	ListImages(ctx context.Context) ([]*runtimeapi.Image, error)
	RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error
	ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error)
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
	Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error)
}

// Thresholds say when images are removed (KubeletConfiguration v1beta1,
// imageGCHighThresholdPercent and the like).
type Thresholds struct {
	High   int           // percent of the disk in use above which images go; 100 for never
	Low    int           // percent in use down to which they go
	MinAge time.Duration // that an image is kept at least after it was first seen
	MaxAge time.Duration // without use, after which it goes however empty the disk; zero for never
}

// CollectorOptions are what a Collector works on. All but Disk are needed.
type CollectorOptions struct {
	Store      Store
	Thresholds Thresholds
	// Volumes are the images that pods mount as volumes, as they name them.
	Volumes func() []string
	// Listed, if not nil, is called with the existing images and the time of the list.
	Listed func(ids []string, at time.Time)
	// Failed reports to people that there is too little room and nothing to remove.
	Failed func(reason, message string)
	// Removed is called for each removed image, with the reason: "space", or "age"
	// if nobody used it. May be nil.
	Removed func(reason string)
	// Disk returns the size of the file system at path and its free space, in
	// bytes; nil for the machine's own.
	Disk   func(path string) (size, free uint64, err error)
	Clock  clock.WithTicker
	Logger *zap.Logger
}

// Collector removes the least recently used images when their disk gets full.
// It is safe for concurrent use.
type Collector struct {
	CollectorOptions

	lock    sync.Mutex
	records map[string]*record // by image id
}

// record is what is remembered about an image.
type record struct {
	seen, used time.Time
	wanted     time.Time // by a container that was yet to be created
}

// NewCollector returns a Collector that does nothing before Run.
func NewCollector(o CollectorOptions) *Collector {
	if o.Disk == nil {
		o.Disk = disk
	}
	return &Collector{CollectorOptions: o, records: map[string]*record{}}
}

func disk(path string) (size, free uint64, err error) {
	space, err := filesystem.Of(path)
	if err != nil {
		return 0, 0, fmt.Errorf("space of %s: %w", path, err)
	}
	return space.Capacity, space.Available, nil
}

// Run looks after the images until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	ticker := c.Clock.NewTicker(collectEvery)
	defer ticker.Stop()
	for failed := false; ; {
		err := c.Collect(ctx)
		if err != nil && ctx.Err() == nil {
			c.Logger.Warn("images could not be collected", zap.Error(err))
			if failed { // once may be chance, as right after the runtime's start
				c.Failed("ImageGCFailed", err.Error())
			}
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Use notes that a container is about to be created from an image.
func (c *Collector) Use(id string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	now := c.Clock.Now()
	r := c.records[id]
	if r == nil {
		r = &record{seen: now}
		c.records[id] = r
	}
	r.used, r.wanted = now, now
}

// Collect removes images that are too old, and then, above the high threshold,
// as many as it takes to get down to the low one.
func (c *Collector) Collect(ctx context.Context) error {
	unused, err := c.unused(ctx)
	if err != nil {
		return err
	}
	unused, err = c.removeOld(ctx, unused)
	if err != nil || c.Thresholds.High >= 100 {
		return err
	}
	path, size, free, err := c.space(ctx)
	if err != nil {
		return err
	}
	if size == 0 {
		c.Failed("InvalidDiskCapacity", errNoCapacity.Error())
		return errNoCapacity
	}
	inUse := 100 - int(min(free, size)*100/size)
	if inUse < c.Thresholds.High {
		return nil
	}
	wanted := int64(size)*int64(100-c.Thresholds.Low)/100 - int64(free)
	c.Logger.Info("images are removed: their disk is getting full",
		zap.String("path", path), zap.Int("percentInUse", inUse), zap.Int64("bytesToFree", wanted))
	freed, err := c.free(ctx, unused, wanted)
	if err == nil && freed < wanted {
		err = fmt.Errorf("Insufficient free disk space on the node's image filesystem (%d%% of %s used). "+
			"Failed to free sufficient space by deleting unused images (freed %d bytes). "+
			"Investigate disk usage, as it could be used by active images, logs, volumes, or other data.", inUse, inUnits(size), freed)
		c.Failed("FreeDiskSpaceFailed", err.Error())
	}
	return err
}

var errNoCapacity = errors.New("invalid capacity 0 on image filesystem")

// inUnits formats a size for people.
func inUnits(bytes uint64) string {
	if bytes < 1<<10 {
		return fmt.Sprintf("%d B", bytes)
	}
	size, unit := float64(bytes)/(1<<10), 0
	for ; size >= 1<<10 && unit < len(units)-1; unit++ {
		size /= 1 << 10
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}

var units = []string{"KiB", "MiB", "GiB", "TiB"}

// FreeAll removes every unused image when the node is short of disk. What is younger than the least
// age of images stays, and what a container is about to be created from does for as long: who fetched
// it would only do so again.
func (c *Collector) FreeAll(ctx context.Context) error {
	unused, err := c.unused(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, image := range unused {
		if !c.young(image) && image.asked.Sub(image.wanted) >= c.Thresholds.MinAge && !c.usedSince(image) {
			failed = append(failed, c.remove(ctx, image.Image, "space"))
		}
	}
	return errors.Join(failed...)
}

// candidate is an image that no container uses.
type candidate struct {
	*runtimeapi.Image
	record
	asked time.Time // when the runtime was asked what it has
}

// young tells whether an image was first seen less than the least age before the runtime was asked.
func (c *Collector) young(image candidate) bool {
	return image.asked.Sub(image.seen) < c.Thresholds.MinAge
}

// usedSince tells whether somebody uses an image that nobody used when the runtime was asked, or a
// container is to be made from it: the runtime's answers, and removing those before it, may have
// taken a while.
func (c *Collector) usedSince(image candidate) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	now := c.records[image.GetId()]
	return now != nil && (now.used.After(image.used) || !now.wanted.Before(image.asked))
}

// volumes are what the runtime may call the images that pods mount as volumes.
func (c *Collector) volumes() []string {
	var names []string
	for _, name := range c.Volumes() {
		names = append(names, name)
		if named, err := reference.ParseNormalizedNamed(name); err == nil {
			names = append(names, reference.TagNameOnly(named).String())
		}
	}
	return names
}

// unused are the removable images, the least recently used first; it also
// updates the records.
func (c *Collector) unused(ctx context.Context) ([]candidate, error) {
	asked := c.Clock.Now()
	images, err := c.Store.ListImages(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	if c.Listed != nil {
		ids := make([]string, len(images))
		for i, image := range images {
			ids[i] = image.GetId()
		}
		c.Listed(ids, asked)
	}
	used, err := c.used(ctx)
	if err != nil {
		return nil, err
	}
	sandbox, err := c.sandboxImage(ctx)
	if err != nil {
		return nil, err
	}
	unused := c.record(images, used, sandbox, asked)
	slices.SortStableFunc(unused, func(a, b candidate) int {
		return cmp.Or(a.used.Compare(b.used), a.seen.Compare(b.seen))
	})
	return unused, nil
}

// used are the names and ids of the images that containers and volumes use.
func (c *Collector) used(ctx context.Context) (map[string]bool, error) {
	containers, err := c.Store.ListContainers(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("listing what images are used for: %w", err)
	}
	used := map[string]bool{}
	for _, container := range containers {
		used[container.GetImageRef()] = true
		used[container.GetImage().GetImage()] = true
	}
	for _, volume := range c.volumes() {
		used[volume] = true
	}
	return used, nil
}

// record notes which images there are and which of them are in use, and returns
// those that may be removed. asked is when the runtime was asked.
func (c *Collector) record(images []*runtimeapi.Image, used map[string]bool, sandbox string, asked time.Time) (unused []candidate) {
	c.lock.Lock()
	defer c.lock.Unlock()
	now := c.Clock.Now()
	records := map[string]*record{}
	for _, image := range images {
		r := c.records[image.GetId()]
		if r == nil {
			r = &record{seen: asked}
		}
		records[image.GetId()] = r
		names := append(slices.Concat(image.GetRepoTags(), image.GetRepoDigests()), image.GetId())
		switch {
		case slices.ContainsFunc(names, func(name string) bool { return used[name] }):
			r.used = now
		case image.GetPinned() || slices.Contains(names, sandbox):
		default:
			unused = append(unused, candidate{Image: image, record: *r, asked: asked})
		}
	}
	c.records = records
	return unused
}

// sandboxImage is the image from which the runtime makes sandboxes. Runtimes
// that don't pin it report it in their verbose status.
func (c *Collector) sandboxImage(ctx context.Context) (string, error) {
	status, err := c.Store.Status(ctx, true)
	if err != nil {
		return "", fmt.Errorf("asking for the image of sandboxes: %w", err)
	}
	var config struct {
		SandboxImage string `json:"sandboxImage"`
	}
	if text, ok := status.GetInfo()["config"]; ok {
		_ = json.Unmarshal([]byte(text), &config) // of another runtime: it pins the image itself
	}
	return config.SandboxImage, nil
}

// space is the usage of the images' file system. Its path is empty if the
// runtime keeps images on none of this machine's file systems.
func (c *Collector) space(ctx context.Context) (path string, size, free uint64, err error) {
	info, err := c.Store.ImageFsInfo(ctx)
	if err != nil {
		return "", 0, 0, fmt.Errorf("asking where images are: %w", err)
	}
	if len(info.GetImageFilesystems()) == 0 {
		return "", 0, 0, errors.New("the runtime does not say where images are")
	}
	path = info.GetImageFilesystems()[0].GetFsId().GetMountpoint()
	size, free, err = c.Disk(path)
	return path, size, free, err
}

// removeOld removes what has not been used for too long, and returns the rest.
func (c *Collector) removeOld(ctx context.Context, unused []candidate) ([]candidate, error) {
	if c.Thresholds.MaxAge == 0 {
		return unused, nil
	}
	now := c.Clock.Now()
	var rest []candidate
	var failed []error
	for _, image := range unused {
		if now.Sub(cmp.Or(image.used, image.seen)) <= c.Thresholds.MaxAge || c.usedSince(image) {
			rest = append(rest, image)
			continue
		}
		failed = append(failed, c.remove(ctx, image.Image, "age"))
	}
	return rest, errors.Join(failed...)
}

// free removes images until the wanted number of bytes is freed, and returns
// how many were. Recent images are left: a pod may be about to use them.
func (c *Collector) free(ctx context.Context, unused []candidate, wanted int64) (freed int64, err error) {
	now := c.Clock.Now()
	for _, image := range unused {
		if freed >= wanted {
			break
		}
		if c.young(image) || !image.used.IsZero() && now.Sub(image.used) < c.Thresholds.MinAge {
			continue
		}
		if c.usedSince(image) {
			continue
		}
		if failed := c.remove(ctx, image.Image, "space"); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		freed += int64(min(image.GetSize(), uint64(math.MaxInt64-freed)))
	}
	return freed, err
}

func (c *Collector) remove(ctx context.Context, image *runtimeapi.Image, reason string) error {
	if err := c.Store.RemoveImage(ctx, &runtimeapi.ImageSpec{Image: image.GetId()}); err != nil && !cri.IsNotFound(err) {
		return err
	}
	c.lock.Lock()
	delete(c.records, image.GetId())
	c.lock.Unlock()
	if c.Removed != nil {
		c.Removed(reason)
	}
	c.Logger.Info("image removed",
		zap.String("image", image.GetId()), zap.Strings("tags", image.GetRepoTags()), zap.Uint64("bytes", image.GetSize()))
	return nil
}
