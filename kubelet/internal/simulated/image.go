package simulated

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageSize is that of every image.
const imageSize = 1 << 20

// reference is the identity of the image that a name leads to.
func reference(name string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name))) }

// image finds an image by its name or identity. The caller holds r.mu.
func (r *Runtime) image(name string) *runtimeapi.Image {
	if !strings.HasPrefix(name, "sha256:") {
		name = reference(name)
	}
	return r.images[name]
}

// PullImage succeeds for every image.
func (r *Runtime) PullImage(ctx context.Context, request *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	name := request.GetImage().GetImage()
	if err := r.take(ctx, r.Pull); err != nil {
		return nil, err
	}
	id := reference(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images[id] = &runtimeapi.Image{Id: id, RepoTags: []string{name}, Size: imageSize, Spec: &runtimeapi.ImageSpec{Image: id}}
	return &runtimeapi.PullImageResponse{ImageRef: id}, nil
}

// ImageStatus returns what is known about an image.
func (r *Runtime) ImageStatus(_ context.Context, request *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &runtimeapi.ImageStatusResponse{Image: r.image(request.GetImage().GetImage())}, nil
}

// ListImages lists all images.
func (r *Runtime) ListImages(context.Context, *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := &runtimeapi.ListImagesResponse{}
	for _, image := range r.images {
		answer.Images = append(answer.Images, image)
	}
	return answer, nil
}

// RemoveImage forgets an image.
func (r *Runtime) RemoveImage(_ context.Context, request *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if image := r.image(request.GetImage().GetImage()); image != nil {
		delete(r.images, image.GetId())
	}
	return &runtimeapi.RemoveImageResponse{}, nil
}

// ImageFsInfo says what the images take up.
func (r *Runtime) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	usage := []*runtimeapi.FilesystemUsage{{
		Timestamp:  r.Clock.Now().UnixNano(),
		FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: r.Root},
		UsedBytes:  &runtimeapi.UInt64Value{Value: uint64(len(r.images)) * imageSize},
		InodesUsed: &runtimeapi.UInt64Value{Value: uint64(len(r.images))},
	}}
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: usage, ContainerFilesystems: usage}, nil
}
