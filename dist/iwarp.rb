class Iwarp < Formula
  desc "RDMA over TCP without RDMA hardware"
  homepage "https://github.com/goiwarp/iwarp"
  version "{{.Version}}"
  license "Apache-2.0"

  on_macos do
{{- with .Archive "darwin" "arm64"}}
    on_arm do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
{{- with .Archive "darwin" "amd64"}}
    on_intel do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end

  on_linux do
{{- with .Archive "linux" "arm64"}}
    on_arm do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
{{- with .Archive "linux" "amd64"}}
    on_intel do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end

  def install
    bin.install "bin/iwarp"
    lib.install "lib/iwarp" if File.directory?("lib/iwarp")
    man1.install Dir["share/man/man1/*.1"]
    bash_completion.install "share/bash-completion/completions/iwarp"
    zsh_completion.install "share/zsh/site-functions/_iwarp"
    fish_completion.install "share/fish/vendor_completions.d/iwarp.fish"
  end

  service do
    run [opt_bin/"iwarp", "serve"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/iwarp version")
  end
end
