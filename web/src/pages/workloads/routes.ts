export const workloadRoutes = [] as const;
