package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ListImages lists the images that the runtime has.
func (c *Client) ListImages(ctx context.Context) ([]*runtimeapi.Image, error) {
	answer, err := call(ctx, c.timeout, "ListImages", "", c.images.ListImages, &runtimeapi.ListImagesRequest{})
	return answer.GetImages(), err
}

// ImageStatus is what the runtime knows about an image; nil if it does not have it.
func (c *Client) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec) (*runtimeapi.Image, error) {
	answer, err := call(ctx, c.timeout, "ImageStatus", image.GetImage(), c.images.ImageStatus, &runtimeapi.ImageStatusRequest{Image: image})
	return answer.GetImage(), err
}

// PullImage pulls an image and returns the runtime's reference to it. Its only
// deadline is ctx's: the runtime itself gives up on pulls that make no
// progress.
func (c *Client) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig,
	sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	answer, err := call(ctx, 0, "PullImage", image.GetImage(), c.images.PullImage,
		&runtimeapi.PullImageRequest{Image: image, Auth: auth, SandboxConfig: sandbox})
	return answer.GetImageRef(), err
}

// RemoveImage removes an image. It is no error if it is gone already.
func (c *Client) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	_, err := call(ctx, c.timeout, "RemoveImage", image.GetImage(), c.images.RemoveImage, &runtimeapi.RemoveImageRequest{Image: image})
	return err
}

// ImageFsInfo returns the usage of the file systems of images and containers.
func (c *Client) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return call(ctx, c.timeout, "ImageFsInfo", "", c.images.ImageFsInfo, &runtimeapi.ImageFsInfoRequest{})
}
