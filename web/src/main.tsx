import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "@/api/query-client";
import { redirectHashLinks, translateHash } from "@/hash-links";
import { router } from "@/router";
import "./app.css";

redirectHashLinks();
// A browser does not load the app again if such an address is opened where the app is open.
window.addEventListener("hashchange", () => {
  const page = translateHash(window.location.hash);
  if (page) router.history.replace(page);
});

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no element #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
